import type { FilePart } from '../../http/multipart.ts';
import { contentTypeFor } from '../../files/store-file.ts';
import type {
  Caller,
  GrowingFile,
  SpooledFile,
  StartUpload,
  StartedUpload,
} from '../../protocol/job-api.ts';

type UploadStart = {
  readonly caller: Caller;
  /** The size of the whole form, or more. */
  readonly atMostBytes: number;
  /** Absent where uploads stay on this machine. */
  readonly startUpload?: StartUpload | undefined;
};

/** Sends the image of one form while the form still arrives. */
type FormUpload = {
  readonly follow: (part: FilePart, file: GrowingFile) => void;
  /** The upload that was started with this file, if it was this one. */
  readonly of: (file: SpooledFile) => StartedUpload | undefined;
};

/** Passes what starts an upload to `work`; an upload that is not finished by then is cancelled. */
export async function withStartedUpload(
  { caller, atMostBytes, startUpload }: UploadStart,
  work: (upload: FormUpload) => Promise<void>,
): Promise<void> {
  let first: { readonly path: string; readonly started: StartedUpload } | undefined;
  try {
    await work({
      follow({ field, filename }, file) {
        if (field !== 'image' || first) return;
        const contentType = contentTypeFor(filename);
        const started = startUpload?.(caller, { file, contentType, atMostBytes });
        first = started && { path: file.path, started };
      },
      of: ({ path }) => (first?.path === path ? first.started : undefined),
    });
  } finally {
    first?.started.cancel();
  }
}
