import { readFile, rm } from 'node:fs/promises';
import type { FileStore, FileType } from '../../ledger/ledger.ts';
import type { FilePart, Form } from '../../http/multipart.ts';
import { type FormLimits, withReceivedForm } from '../../http/received-form.ts';
import type { SpooledFile, StartedUpload } from '../../protocol/job-api.ts';
import type { DialectRules } from '../../dialects/dialect.ts';
import { V1Error, emptyError, plainError, requirePrintable } from '../../dialects/errors.ts';
import type { V1Request } from '../routes.ts';
import { isFileType, safeFolder, safeName } from '../../files/safe-name.ts';
import { bodyError } from '../routing/body.ts';

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
/** Where the file was on a Windows machine, which some clients send along. */
const WINDOWS_FOLDER = /^[a-z]:\\.*\\/i;
/** Left at the start by clients that cut a path before its last slash; the original's form reader drops them. */
const LEADING_SLASHES = /^[\\/]+/;

/** The handlers of a form. */
type FormWork = {
  /** The media type under which a file is sent on while it arrives; `undefined`: it is not. */
  readonly sentAs?: (part: FilePart) => string | undefined;
  readonly work: (
    form: Form,
    startedOf: (file: SpooledFile) => StartedUpload | undefined,
  ) => Promise<void>;
};

/** Receives the form, passes it to `work`, and removes its files afterwards. */
export async function withForm(
  limits: FormLimits,
  request: V1Request,
  { work, sentAs = () => undefined }: FormWork,
): Promise<void> {
  if (!request.ctx.is('multipart/form-data'))
    throw emptyError(400, 'The body must be multipart/form-data.');
  await withReceivedForm(limits, request, {
    sentAs,
    async work(received, startedOf) {
      if (!received.ok) throw bodyError(received, 'invalid_upload');
      try {
        await work(received.value, startedOf);
      } finally {
        await Promise.all(received.value.files.map(({ file }) => rm(file.path, { force: true })));
      }
    },
  });
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
  if (filenameGiven === '..') throw emptyError(400, '"image" is named like a folder outside.');
  if (filename === undefined) throw uploadError('This is not a possible file name.');
  if (
    !ignoresFolders &&
    requested.folder !== '' &&
    subfolder !== '' &&
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
