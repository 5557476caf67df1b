import { readFile, rm } from 'node:fs/promises';
import type { FileStore, FileType } from '../../ledger/ledger.ts';
import { type Form, type MultipartOptions, receiveMultipart } from '../../http/multipart.ts';
import type { SpoolRefusal } from '../../lib/spool.ts';
import type { Durability } from '../../lib/durability.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { DialectRules } from '../../dialects/dialect.ts';
import {
  V1Error,
  emptyError,
  plainError,
  requirePrintable,
  retryAfterHeader,
} from '../../dialects/errors.ts';
import type { V1Request } from '../routes.ts';
import { isFileType, safeFolder, safeName } from '../../files/safe-name.ts';
import type { UploadBusy, UploadLimit } from '../../http/upload-limit.ts';

/** Where a form's files land first, and how large they may be. */
export type FormLimits = {
  readonly spoolDir: string;
  /** `fsync` for the spooled files; `transient` where they are only sent on. */
  readonly durability?: Durability;
  readonly maxUploadBytes: number;
  readonly limitUploads: UploadLimit;
};

/** A parsed upload form: the file, its target, and the fields to echo in the answer. */
export type UploadRequest = {
  readonly file: SpooledFile;
  readonly type: FileType;
  readonly subfolder: string;
  readonly filename: string;
  readonly overwrite: boolean;
  /** Echoed as they were sent, whatever they resolve to. */
  readonly shown: { readonly subfolder: string; readonly folder: string };
};

/** A text field sent as a file part is read up to this size. */
const MAX_TEXT_BYTES = 64 * 1024;
const TRUE_VALUES = new Set(['true', '1']);
/** The rest of a refused body is not worth reading. */
const CLOSE_CONNECTION = { headers: { Connection: 'close' } };
/** Where the file was on a Windows machine, which some clients send along. */
const WINDOWS_FOLDER = /^[a-z]:\\.*\\/i;
/** Left at the start by clients that cut a path before its last slash; the original's form reader drops them. */
const LEADING_SLASHES = /^[\\/]+/;

/** The handlers of a form. */
type FormWork = {
  readonly work: (form: Form) => Promise<void>;
  /** Called for a larger file while it arrives. */
  readonly follow?: MultipartOptions['follow'];
};

/** Receives the form, passes it to `work`, and removes its files afterwards. */
export async function withForm(
  { spoolDir, durability, maxUploadBytes, limitUploads }: FormLimits,
  { ctx, caller }: Pick<V1Request, 'ctx' | 'caller'>,
  { work, follow }: FormWork,
): Promise<void> {
  if (!ctx.is('multipart/form-data'))
    throw emptyError(400, 'The body must be multipart/form-data.');
  const options = { dir: spoolDir, durability, maxFileBytes: maxUploadBytes, follow };
  const received = await limitUploads(caller.user, () => receiveMultipart(ctx.req, options));
  if (!received.ok) throw formError(received);
  try {
    await work(received.value);
  } finally {
    await Promise.all(received.value.files.map(({ file }) => rm(file.path, { force: true })));
  }
}

/** v1's own refusals are empty; what it fails on with a 500 is refused in words. */
export async function readUploadRequest(
  files: FileStore,
  user: string,
  {
    form,
    subfolder: folderRule,
  }: { readonly form: Form; readonly subfolder: DialectRules['subfolder'] },
): Promise<UploadRequest> {
  const image = form.files.find(({ field }) => field === 'image');
  if (image === undefined && form.fields.has('image')) throw uploadError('image must be a file.');
  if (image === undefined) throw emptyError(400, '"image" is missing.');
  const filenameGiven = requirePrintable(image.filename, 'filename')
    .replace(WINDOWS_FOLDER, '')
    .replace(LEADING_SLASHES, '');
  if (filenameGiven === '') throw emptyError(400, '"image" has no file name.');
  const type = await nameField(form, 'type', 'input');
  if (!isFileType(type)) throw uploadError('type must be input, temp or output.');
  const requested = {
    subfolder: await nameField(form, 'subfolder', ''),
    folder: folderPart(filenameGiven),
  };
  const filename = safeName(filenameGiven.slice(requested.folder.length));
  const path = [requested.subfolder, requested.folder]
    .filter((filePart) => filePart !== '')
    .join('/');
  const ignoresFolders = folderRule === 'ignored';
  const subfolder = ignoresFolders ? '' : safeFolder(path);
  if (subfolder === undefined) throw emptyError(400, '"subfolder" is not a possible folder.');
  if (filename === undefined) throw uploadError('This is not a possible file name.');
  if (
    !ignoresFolders &&
    requested.folder !== '' &&
    !(await folderExists(files, { user, type, subfolder }))
  ) {
    throw uploadError('There is no such folder.');
  }
  const asksToOverwrite = TRUE_VALUES.has((await textField(form, 'overwrite')) ?? '');
  // Where folders are ignored, a file of one subfolder must not replace that of another.
  const overwrite = asksToOverwrite && !(ignoresFolders && path !== '');
  // "The subfolder is returned in the response", and the name is the one to ask for.
  const shown = ignoresFolders ? { ...requested, folder: '' } : requested;
  return { file: image.file, type, subfolder, filename, overwrite, shown };
}

/** An upload that the original fails on. */
export function uploadError(message: string): V1Error {
  return new V1Error(400, plainError('invalid_upload', message));
}

/** The original says a 413 in plain text. */
function formError(refused: SpoolRefusal | UploadBusy): V1Error {
  const { status, message } = refused;
  if (status === 413) return new V1Error(413, message, CLOSE_CONNECTION);
  const waitSeconds = status === 503 ? refused.retryAfterSeconds : undefined;
  return new V1Error(status, plainError(FORM_CODES[status], message), {
    headers: { ...retryAfterHeader(waitSeconds), ...CLOSE_CONNECTION.headers },
  });
}

const FORM_CODES = {
  400: 'invalid_upload',
  415: 'unsupported_encoding',
  503: 'server_busy',
  507: 'insufficient_storage',
} as const satisfies Record<Exclude<(SpoolRefusal | UploadBusy)['status'], 413>, string>;

/** A field's text; some clients send theirs as a file part. */
export async function textField(
  { fields, files }: Form,
  field: string,
): Promise<string | undefined> {
  const [value] = fields.get(field) ?? [];
  if (value !== undefined) return value;
  const filePart = files.find((candidate) => candidate.field === field);
  if (filePart === undefined || filePart.file.sizeBytes > MAX_TEXT_BYTES) return undefined;
  return readFile(filePart.file.path, 'utf8');
}

async function nameField(form: Form, field: string, absent: string): Promise<string> {
  return requirePrintable((await textField(form, field)) ?? absent, field);
}

/** The directory part of a file name, its slash included. */
function folderPart(filename: string): string {
  return filename.slice(0, filename.lastIndexOf('/') + 1);
}

type UserFolder = { readonly user: string; readonly type: FileType; readonly subfolder: string };

/** v1 creates the folder `subfolder` names, but not one inside the file name. */
async function folderExists(
  files: FileStore,
  { user, type, subfolder }: UserFolder,
): Promise<boolean> {
  const rows = await files.list(user, type);
  return rows.some((row) => `${row.subfolder}/`.startsWith(`${subfolder}/`));
}
