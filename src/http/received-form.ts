import { rm } from 'node:fs/promises';
import type Koa from 'koa';
import type { FileDurability } from '../lib/durability.ts';
import type {
  Caller,
  GrowingFile,
  SpooledFile,
  StartUpload,
  StartedUpload,
} from '../protocol/job-api.ts';
import { type FilePart, type Form, type ReceivedForm, receiveMultipart } from './multipart.ts';
import type { BodyRefusal } from './unpacked-body.ts';
import type { UploadLimit } from './upload-limit.ts';

/** The folder for the received files of a form, and their maximum size. */
export type FormLimits = {
  readonly spoolDir: string;
  /** `none` for files that are only forwarded. */
  readonly durability?: FileDurability;
  readonly maxUploadBytes: number;
  readonly limitUploads: UploadLimit;
  /** Forwards a file while it arrives. Absent where uploads stay on this machine. */
  readonly startUpload?: StartUpload | undefined;
};

/** The handlers of a form. */
export type FormWork<T> = {
  readonly maxFields?: number;
  /**
   * The media type under which a file is forwarded while it arrives; `undefined`: it is not
   * forwarded.
   */
  readonly sentAs?: ((part: FilePart) => string | undefined) | undefined;
  readonly onRefused: (refusal: BodyRefusal) => T;
  /** `startedOf` returns the upload that was started with this file, if there is one. */
  readonly work: (
    form: Form,
    startedOf: (file: SpooledFile) => StartedUpload | undefined,
  ) => Promise<T>;
};

/**
 * Receives the form of a user, passes it to `work`, and removes the files that `work` leaves. The first file may be
 * forwarded while the form still arrives. An upload that `work` does not finish is cancelled.
 */
export async function withReceivedForm<T>(
  { spoolDir: dir, durability, maxUploadBytes, limitUploads, startUpload }: FormLimits,
  { ctx, caller }: { readonly ctx: Koa.Context; readonly caller: Caller },
  { maxFields, sentAs, onRefused, work }: FormWork<T>,
): Promise<T> {
  let first: { readonly path: string; readonly started: StartedUpload } | undefined;
  let form: ReceivedForm | undefined;
  const atMostBytes = ctx.request.length ?? maxUploadBytes;
  const follow = (part: FilePart, file: GrowingFile): void => {
    const contentType = first ? undefined : sentAs?.(part);
    if (contentType === undefined) return;
    const started = startUpload?.(caller, { file, contentType, atMostBytes });
    first = started && { path: file.path, started };
  };
  const options = { dir, durability, maxFileBytes: maxUploadBytes, maxFields, follow };
  try {
    form = await limitUploads(caller.user, () => receiveMultipart(ctx.req, options));
    if (!form.ok) return onRefused(form);
    return await work(form.value, ({ path }) => (first?.path === path ? first.started : undefined));
  } finally {
    first?.started.cancel();
    const files = form?.ok ? form.value.files : [];
    await Promise.all(files.map(({ file }) => rm(file.path, { force: true })));
  }
}
