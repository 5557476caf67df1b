import { readFile, rm } from 'node:fs/promises';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import type Koa from 'koa';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { spoolStream } from '../spool.ts';
import type { Caller, JobApi, SpooledFile } from '../wire/jobs.ts';
import { type DialectRules, rulesFor } from './dialect.ts';
import { V1Error, plainError, sendJson } from './errors.ts';
import { type KeepDeps, type NewFile, freeName, keepBeside, keepOver } from './keep-file.ts';
import { type OriginalRef, composeMask, readOriginalRef } from './mask.ts';
import { printable } from './printable.ts';
import { toV1FileError } from './relay.ts';
import type { Semaphore } from './render.ts';
import type { V1Request } from './routes.ts';
import { annotated, isFileType, splitPath, withinRoot } from './safe-name.ts';
import {
  type FormLimits,
  type Wish,
  readWish,
  refusedUpload,
  textOf,
  withForm,
} from './upload-form.ts';
import { readWhole } from './whole-file.ts';

/** What the uploads need of the house. */
export type UploadDeps = KeepDeps &
  FormLimits & {
    readonly jobs: KeepDeps['jobs'] & Pick<JobApi, 'content'>;
    /** Shared by everything that decodes pictures. */
    readonly decoding: Semaphore;
  };

/** `POST /upload/image`: any file, despite the name. */
export async function uploadImage(deps: UploadDeps, request: V1Request): Promise<void> {
  const { ctx, caller } = request;
  await withForm(deps, request, async (form) => {
    const { subfolder } = rulesFor(ctx);
    const wish = await readWish(deps.files, caller.user, { form, subfolder });
    sendKept(ctx, wish, await keep(deps, wish, { ...wish, caller, reuse: 'same bytes' }));
  });
}

/** `POST /upload/mask`: the original with the mask's alpha. */
export async function uploadMask(deps: UploadDeps, request: V1Request): Promise<void> {
  const { ctx, caller } = request;
  await withForm(deps, request, async (form) => {
    const { subfolder } = rulesFor(ctx);
    const wish = await readWish(deps.files, caller.user, { form, subfolder });
    const text = (await textOf(form, 'original_ref')) ?? (await textOf(form, 'originalRef'));
    const ref = text === undefined ? undefined : readOriginalRef(text);
    if (ref === undefined) throw refusedUpload('original_ref must be JSON that names a file.');
    const original = await findOriginal(deps.files, caller, { ...ref, rule: subfolder });
    sendKept(ctx, wish, await keepMask(deps, { caller, wish, original }));
  });
}

type Mask = {
  readonly caller: Caller;
  readonly wish: Wish;
  readonly original: FileRow | undefined;
};

/** v1 answers a name even when there is no such original; then nothing bears that name. */
async function keepMask(deps: UploadDeps, { caller, wish, original }: Mask): Promise<string> {
  if (original === undefined) {
    return wish.overwrite ? wish.filename : freeName(deps, { ...wish, caller });
  }
  const bytes = await deps.decoding(() => composed(deps, { caller, row: original }, wish.file));
  const file = await spooled(deps, bytes);
  try {
    return await keep(deps, wish, { ...wish, file, caller, reuse: 'never' });
  } finally {
    await rm(file.path, { force: true });
  }
}

async function spooled({ spoolDir }: FormLimits, bytes: Buffer): Promise<SpooledFile> {
  const written = await spoolStream(Readable.from([bytes]), {
    dir: spoolDir,
    maxBytes: bytes.length,
  });
  if (!written.ok)
    throw new V1Error(written.status, plainError('insufficient_storage', written.message));
  return written.value;
}

type Original = { readonly caller: Caller; readonly row: FileRow };

async function composed(deps: UploadDeps, original: Original, mask: SpooledFile): Promise<Buffer> {
  const bytes = await readWhole(deps.jobs, { ...original, assetId: original.row.assetId });
  if (!bytes.ok) throw toV1FileError(bytes.error);
  const picture = await composeMask(bytes.value, await readFile(mask.path));
  if (!picture.ok) throw refusedUpload(picture.reason);
  return picture.bytes;
}

async function findOriginal(
  files: FileStore,
  { user }: Caller,
  ref: OriginalRef & { readonly rule: DialectRules['subfolder'] },
): Promise<FileRow | undefined> {
  for (const text of [ref.filename, ref.subfolder, ref.type]) printable(text, 'original_ref');
  const { name, type = ref.type } = annotated(ref.filename);
  if (!isFileType(type) || name.startsWith('/') || name.includes('..')) return undefined;
  const path = splitPath(name);
  const subfolder = withinRoot(posix.join(ref.subfolder, path.folder));
  const named = { type, subfolder: subfolder ?? '', filename: path.name };
  const row = subfolder === undefined ? undefined : await files.get(user, named);
  return row === undefined && ref.rule === 'ignored' ? files.newestNamed(user, named) : row;
}

function keep(deps: UploadDeps, { overwrite }: Wish, file: NewFile): Promise<string> {
  return overwrite ? keepOver(deps, file) : keepBeside(deps, file);
}

function sendKept(ctx: Koa.Context, { shown, type }: Wish, filename: string): void {
  sendJson(ctx, { name: shown.folder + filename, subfolder: shown.subfolder, type });
}
