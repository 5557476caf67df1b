import type { FileRow, FileStore, FilePlace } from '../ledger/ledger.ts';
import {
  type Caller,
  type AssetCalls,
  type SpooledFile,
  type StartedUpload,
  isGone,
} from '../protocol/job-api.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import type { Asset } from '../protocol/v2.ts';
import { emptyError } from '../dialects/errors.ts';
import { toV1FileError } from '../dialects/file-error.ts';
import { contentTypeOf } from '../http/file-headers.ts';
import { uploadName } from '../translate/free-names.ts';
import { uploadPathOf } from './safe-name.ts';

/** Services for storing a file. */
export type FileStoringServices = {
  readonly jobs: AssetCalls;
  readonly files: FileStore;
  readonly now: () => number;
};

/** A received file and its requested name. */
export type NewFile = FilePlace & {
  readonly caller: Caller;
  /** Without a path it is bytes that the user has already. */
  readonly file: Omit<SpooledFile, 'path'> & Partial<Pick<SpooledFile, 'path'>>;
  /** Set when the upstream has most of the bytes already. */
  readonly started?: StartedUpload | undefined;
  /** `same bytes`: a name that already has the same bytes is returned instead of a new one. */
  readonly reuse: 'same bytes' | 'never';
};

/** The number of names that are looked up before other calls get their turn. */
const NAMES_PER_TURN = 100;

/** Stores a file under exactly its name, and replaces any earlier file of that name. */
export async function storeAs(services: FileStoringServices, newFile: NewFile): Promise<FileRow> {
  const asset = await storeBytes(services.jobs, newFile);
  const row = rowOf(services, newFile, asset);
  await services.files.put(row);
  return row;
}

/** `isNew` is false for a file that had the name and the same bytes already. */
export type StoredFile = { readonly row: FileRow; readonly isNew: boolean };

/**
 * Stores a file beside the existing ones. Like v1 it tries `cat (1).png`, `cat (2).png` … until a
 * name is free or has the same bytes.
 */
export async function storeUnderFreeName(
  services: FileStoringServices,
  newFile: NewFile,
): Promise<StoredFile> {
  let asset: Asset | undefined;
  const pause = yieldEvery(NAMES_PER_TURN);
  for (let number = 0; ;) {
    await pause();
    const candidate = { ...newFile, filename: uploadName(newFile.filename, number) };
    const existing = await services.files.get(newFile.caller.user, candidate);
    if (existing === undefined) {
      asset ??= await storeBytes(services.jobs, candidate);
      const row = rowOf(services, candidate, asset);
      if (await services.files.claim(row)) return { row, isNew: true };
      // A name may be taken by something that is not a file of this user.
      if ((await services.files.get(newFile.caller.user, candidate)) === undefined) number++;
    } else if (newFile.reuse === 'same bytes' && existing.hash === newFile.file.hash) {
      const row = await reuseExisting(services, { existing, candidate, asset });
      return { row, isNew: false };
    } else number++;
  }
}

type SameBytes = {
  readonly existing: FileRow;
  readonly candidate: NewFile;
  readonly asset: Asset | undefined;
};

/**
 * Uses a name that has the same bytes already. Nothing is written, unless the asset behind it is
 * gone.
 */
async function reuseExisting(
  services: FileStoringServices,
  { existing, candidate, asset }: SameBytes,
): Promise<FileRow> {
  const current = await services.jobs.asset(candidate.caller, existing.assetId);
  if (current.ok) {
    // One upstream has one record for equal bytes, however often they are sent.
    const isUnneeded = asset !== undefined && asset.id !== existing.assetId;
    if (isUnneeded) await services.jobs.deleteAsset(candidate.caller, asset.id);
    return existing;
  }
  if (!isGone(current.error)) throw toV1FileError(current.error);
  const renewed = asset ?? (await storeBytes(services.jobs, candidate));
  const row = rowOf(services, candidate, renewed);
  await services.files.put(row);
  return row;
}

/**
 * Uploads a file to the upstream. Bytes that the user has there already are not sent again, unless
 * most of them were sent before their hash was known.
 */
export async function storeBytes(
  jobs: FileStoringServices['jobs'],
  newFile: Omit<NewFile, 'reuse'>,
): Promise<Asset> {
  const { caller, file, started } = newFile;
  const filePath = uploadPathOf(newFile);
  const known = started === undefined && (await findKnownBytes(jobs, { caller, file, filePath }));
  if (known) return known;
  const { path } = file;
  if (path === undefined) throw emptyError(404, 'The file is gone.');
  const contentType = contentTypeFor(newFile.filename);
  const upload = { file: { ...file, path }, filePath, contentType, expectedHash: file.hash };
  const created = await jobs.createAsset(caller, { ...upload, ...(started && { started }) });
  if (!created.ok) throw toV1FileError(created.error);
  return created.value;
}

async function findKnownBytes(
  jobs: FileStoringServices['jobs'],
  { caller, file: { hash }, filePath }: Pick<NewFile, 'caller' | 'file'> & { filePath: string },
): Promise<Asset | undefined> {
  const known = await jobs.hasBlob(caller, hash);
  if (!known.ok || !known.value) return undefined;
  const linked = await jobs.assetFromHash(caller, { hash, filePath });
  return linked.ok ? linked.value : undefined;
}

function rowOf({ now }: FileStoringServices, newFile: NewFile, asset: Asset): FileRow {
  const { caller, type, subfolder, filename, file } = newFile;
  return {
    user: caller.user,
    type,
    subfolder,
    filename,
    assetId: asset.id,
    hash: file.hash,
    sizeBytes: file.sizeBytes,
    contentType: contentTypeFor(filename),
    modifiedAtMs: now(),
  };
}

/** Returns the content type of a file, by its name alone. */
export function contentTypeFor(filename: string): string {
  return contentTypeOf(filename) ?? 'application/octet-stream';
}
