import { posix } from 'node:path';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { type Caller, type JobApi, type Result, type SpooledFile, isGone } from '../wire/jobs.ts';
import type { Asset } from '../wire/v2.ts';
import { toV1FileError } from './relay.ts';
import { contentTypeOf } from './served-as.ts';
import { uploadPathOf } from './upload-path.ts';

/** What keeping a file needs of the house. */
export type KeepDeps = {
  readonly jobs: Pick<
    JobApi,
    'createAsset' | 'assetFromHash' | 'hasBlob' | 'asset' | 'deleteAsset'
  >;
  readonly files: FileStore;
  readonly now: () => number;
};

/** A received file and the name it asks for. */
export type NewFile = Pick<FileRow, 'type' | 'subfolder' | 'filename'> & {
  readonly caller: Caller;
  readonly file: SpooledFile;
  /** Whether a name that holds the same bytes already is answered instead of a new one. */
  readonly reuse: 'same bytes' | 'never';
};

type Name = Pick<NewFile, 'caller' | 'type' | 'subfolder' | 'filename'>;

/** Keeps a file under exactly its name, whatever that named before. */
export async function keepOver(deps: KeepDeps, wanted: NewFile): Promise<string> {
  const asset = await storeBytes(deps.jobs, wanted);
  await deps.files.put(rowOf(deps, wanted, asset));
  return wanted.filename;
}

/**
 * Keeps a file beside those that are there and answers its name: v1 counts `cat (1).png`,
 * `cat (2).png` … until a name is free or holds these very bytes.
 */
export async function keepBeside(deps: KeepDeps, wanted: NewFile): Promise<string> {
  let asset: Asset | undefined;
  for (let number = 0; ;) {
    const named = { ...wanted, filename: numbered(wanted.filename, number) };
    const held = await deps.files.get(wanted.caller.user, named);
    if (held === undefined) {
      asset ??= await storeBytes(deps.jobs, named);
      if (await deps.files.claim(rowOf(deps, named, asset))) return named.filename;
      // A name may be taken by what is no file of its user.
      if ((await deps.files.get(wanted.caller.user, named)) === undefined) number++;
    } else if (wanted.reuse === 'same bytes' && held.hash === wanted.file.hash) {
      await settleOn(deps, { held, named, asset });
      return named.filename;
    } else number++;
  }
}

/** The name {@link keepBeside} would find free now; nothing is kept. */
export async function freeName({ files }: Pick<KeepDeps, 'files'>, wanted: Name): Promise<string> {
  for (let number = 0; ; number++) {
    const filename = numbered(wanted.filename, number);
    if ((await files.get(wanted.caller.user, { ...wanted, filename })) === undefined)
      return filename;
  }
}

type Twin = { readonly held: FileRow; readonly named: NewFile; readonly asset: Asset | undefined };

/** The name holds these bytes: nothing is written, unless the asset behind it is gone meanwhile. */
async function settleOn(deps: KeepDeps, { held, named, asset }: Twin): Promise<void> {
  const alive = await deps.jobs.asset(named.caller, held.assetId);
  if (alive.ok) {
    // One upstream has one record for equal bytes, whoever sends them again.
    const isInVain = asset !== undefined && asset.id !== held.assetId;
    return void (isInVain && (await deps.jobs.deleteAsset(named.caller, asset.id)));
  }
  if (!isGone(alive.error)) throw toV1FileError(alive.error);
  await deps.files.put(rowOf(deps, named, asset ?? (await storeBytes(deps.jobs, named))));
}

/** Brings a file to the upstream; bytes the user has there already are not sent again. */
export async function storeBytes(
  jobs: KeepDeps['jobs'],
  wanted: Name & Pick<NewFile, 'file'>,
): Promise<Asset> {
  const { caller, file } = wanted;
  const filePath = uploadPathOf(wanted);
  const known = await jobs.hasBlob(caller, file.hash);
  if (known.ok && known.value) {
    const linked = await jobs.assetFromHash(caller, { hash: file.hash, filePath });
    if (linked.ok) return linked.value;
  }
  const upload = { file, filePath, contentType: typeOf(wanted.filename), expectedHash: file.hash };
  return accepted(await jobs.createAsset(caller, upload));
}

function accepted<T>(result: Result<T>): T {
  if (!result.ok) throw toV1FileError(result.error);
  return result.value;
}

function rowOf({ now }: Pick<KeepDeps, 'now'>, wanted: NewFile, asset: Asset): FileRow {
  const { caller, type, subfolder, filename, file } = wanted;
  return {
    user: caller.user,
    type,
    subfolder,
    filename,
    assetId: asset.id,
    hash: file.hash,
    sizeBytes: file.sizeBytes,
    contentType: typeOf(filename),
    modifiedAtMs: now(),
  };
}

/** What a file is served as when nothing else is known of it. */
export function typeOf(filename: string): string {
  return contentTypeOf(filename) ?? 'application/octet-stream';
}

/** v1 puts the number before the last extension: `a.tar (1).gz`. */
function numbered(filename: string, number: number): string {
  if (number === 0) return filename;
  const { name, ext } = posix.parse(filename);
  return `${name} (${number})${ext}`;
}
