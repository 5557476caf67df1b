import type { FileStore } from '../ledger/ledger.ts';
import { isJsonObject } from '../protocol/json.ts';
import type { Caller, AssetCalls, V2Error } from '../protocol/job-api.ts';
import type { ResolvedFile } from './resolve-files.ts';
import { uploadPathOf } from './safe-name.ts';

type AssetRenewalServices = {
  readonly jobs: AssetCalls;
  readonly files: FileStore;
  /** Uploads a file again from a copy. Returns the id of the new asset, if there is a copy. */
  readonly reupload?:
    | ((caller: Caller, file: ResolvedFile) => Promise<string | undefined>)
    | undefined;
};

/** The parts of a refused submission that are about files. */
type AssetRefusal = {
  readonly resolvedFiles: readonly ResolvedFile[];
  readonly error: V2Error;
};

/**
 * Renews the files of a submission that was refused with `missing_asset`: those that are gone at
 * the upstream, though their bytes still exist, get new records. The refusal was certain, so the
 * prompt may be sent again, once and under a new key. `undefined` when that would not help.
 */
export async function renewAssets(
  services: AssetRenewalServices,
  caller: Caller,
  { resolvedFiles, error }: AssetRefusal,
): Promise<readonly ResolvedFile[] | undefined> {
  if (error.code !== 'missing_asset') return undefined;
  const { areNamed, files } = missingFiles(resolvedFiles, error);
  const renewed = new Map<string, string>();
  for (const file of files) {
    if (renewed.has(file.assetId)) continue;
    if (!areNamed && (await services.jobs.asset(caller, file.assetId)).ok) continue;
    const assetId = await renewFile(services, caller, file);
    if (assetId === undefined) return undefined;
    renewed.set(file.assetId, assetId);
  }
  if (renewed.size === 0) return undefined;
  return resolvedFiles.map((file) => ({
    ...file,
    assetId: renewed.get(file.assetId) ?? file.assetId,
  }));
}

/** Returns the files that the refusal names; all of them when it names none. */
function missingFiles(resolvedFiles: readonly ResolvedFile[], { details }: V2Error) {
  const named = isJsonObject(details) ? details['missing_ids'] : undefined;
  if (!Array.isArray(named) || named.length === 0) return { areNamed: false, files: resolvedFiles };
  const ids = new Set<unknown>(named);
  return { areNamed: true, files: resolvedFiles.filter(({ assetId }) => ids.has(assetId)) };
}

/**
 * Returns the id of a new record of the file, from bytes that the upstream has or that can be
 * uploaded again.
 */
async function renewFile(
  { jobs, files, reupload }: AssetRenewalServices,
  caller: Caller,
  file: ResolvedFile,
): Promise<string | undefined> {
  const { assetId, hash } = file;
  const created =
    hash === null
      ? undefined
      : await jobs.assetFromHash(caller, { hash, filePath: uploadPathOf(file) });
  if (created?.ok && created.value.id !== assetId) return recordId(created.value.id);
  const uploadedId = await reupload?.(caller, file);
  // The same id, where a service gives the same bytes the same id.
  if (uploadedId !== undefined) return uploadedId;
  // An output that the upstream now has under another id.
  const asset = await jobs.asset(caller, assetId);
  return asset.ok && asset.value.id !== assetId ? recordId(asset.value.id) : undefined;

  async function recordId(newId: string): Promise<string> {
    // The name may stand for other bytes now; then the row is not changed.
    const row = await files.get(caller.user, file);
    if (row?.assetId === assetId) await files.put({ ...row, assetId: newId });
    return newId;
  }
}
