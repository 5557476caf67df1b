import { readFile } from 'node:fs/promises';
import type { FileStore, FileType } from '../../ledger/ledger.ts';
import type { Form } from '../../http/multipart.ts';
import { type FormLimits, type FormWork, withReceivedForm } from '../../http/received-form.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { rulesFor } from '../../dialects/dialect.ts';
import { toLookupPath } from '../../protocol/v1.ts';
import { V1Error, plainError, requirePrintable } from '../../dialects/errors.ts';
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
  /** The folder as it was sent, which the answer echoes whatever it resolves to. */
  readonly shown: { readonly subfolder: string; readonly folder: string };
};

/** A text field sent as a file part is read up to this size. */
const MAX_TEXT_BYTES = 64 * 1024;
const TRUE_VALUES = new Set(['true', '1']);
/** The folder on Windows that some clients put before the name of a file. */
const WINDOWS_FOLDER = /^.*\\/s;
/**
 * Slashes that some clients leave at the start when they cut a path before its last slash. The
 * original's form reader drops them.
 */
const LEADING_SLASHES = /^\/+/;
const BLANKS_AT_END = /(?<! ) +$/;

/** Receives the form and passes it to `work`. */
export async function withForm<T>(
  limits: FormLimits,
  request: V1Request,
  work: Pick<FormWork<T>, 'work' | 'sentAs'>,
): Promise<T> {
  if (!request.ctx.is('multipart/form-data'))
    throw uploadError('The body must be multipart/form-data.');
  return await withReceivedForm(limits, request, {
    ...work,
    onRefused(refusal) {
      throw bodyError(refusal, 'invalid_upload');
    },
  });
}

/** Reads the form of an upload. */
export async function readUploadRequest(
  files: FileStore,
  { ctx, caller: { user } }: V1Request,
  form: Form,
): Promise<UploadRequest> {
  const image = form.files.find(({ field }) => field === 'image');
  if (image === undefined && form.fields.has('image')) throw uploadError('image must be a file.');
  if (image === undefined) throw uploadError('"image" is missing.');
  const filenameGiven = nameGiven(image.filename);
  const type = await nameField(form, 'type', 'input');
  if (!isFileType(type)) throw uploadError('type must be input, temp or output.');
  const requested = {
    subfolder: await nameField(form, 'subfolder', ''),
    folder: filenameGiven.slice(0, filenameGiven.lastIndexOf('/') + 1),
  };
  const filename = safeName(filenameGiven.slice(requested.folder.length));
  const path = [requested.subfolder, requested.folder].filter((part) => part !== '').join('/');
  const ignoresFolders = rulesFor(ctx).subfolder === 'ignored';
  const subfolder = ignoresFolders ? '' : safeFolder(toLookupPath(path));
  if (subfolder === undefined) throw uploadError('"subfolder" is not a possible folder.');
  if (filenameGiven === '..') throw uploadError('"image" is named like a folder outside.');
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
  // Where folders are ignored, a file of one subfolder must not replace one of another.
  const overwrite = asksToOverwrite && !(ignoresFolders && path !== '');
  // The specification says: "The subfolder is returned in the response". The name is the one to ask
  // for.
  const shown = ignoresFolders ? { ...requested, folder: '' } : requested;
  return { file: image.file, type, subfolder, filename, overwrite, shown };
}

/** Returns the name of the file as the client gave it, with the folder in it. */
function nameGiven(filename: string): string {
  const given = requirePrintable(filename, 'filename')
    .replace(WINDOWS_FOLDER, '')
    .replace(LEADING_SLASHES, '')
    .replace(BLANKS_AT_END, '');
  if (given === '') throw uploadError('"image" has no file name.');
  return given;
}

/** Returns the error of an upload that cannot be stored. */
export function uploadError(message: string): V1Error {
  return new V1Error(400, plainError('invalid_upload', message));
}

/** Returns the text of a field. Some clients send theirs as a file part. */
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

type UserFolder = { readonly user: string; readonly type: FileType; readonly subfolder: string };

/**
 * True when the folder exists. v1 creates the folder that `subfolder` names, but not one that is
 * part of the file name.
 */
async function folderExists(
  files: FileStore,
  { user, type, subfolder }: UserFolder,
): Promise<boolean> {
  const rows = await files.list(user, type);
  return rows.some((row) => `${row.subfolder}/`.startsWith(`${subfolder}/`));
}
