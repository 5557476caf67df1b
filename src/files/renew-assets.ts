import type { FileStore } from '../ledger/ledger.ts';
import { isJsonObject } from '../protocol/json.ts';
import type { Caller, JobApi, V2Error } from '../protocol/job-api.ts';
import type { ResolvedFile } from './resolve-files.ts';
import { uploadPathOf } from './safe-name.ts';

type AssetRenewalServices = {
  readonly jobs: Pick<JobApi, 'asset' | 'assetFromHash'>;
  readonly files: Pick<FileStore, 'get' | 'put'>;
  /** Uploads a file again from a copy, if there is one: the id of its new asset. */
  readonly reupload?:
    | ((caller: Caller, file: ResolvedFile) => Promise<string | undefined>)
    | undefined;
};

/** A refused submission, as far as it is about files. */
export type AssetRefusal = {
  readonly resolvedFiles: readonly ResolvedFile[];
  readonly error: V2Error;
};

/**
 * The files of a submission that was refused with `missing_asset`, with new records for those that
 * are gone upstream though their bytes are still there. The refusal was certain, so the prompt may
 * be sent again, once and under a new key; `undefined` when that would not help: it names the files.
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

/** The files the refusal names; all of them when it names none. */
function missingFiles(resolvedFiles: readonly ResolvedFile[], { details }: V2Error) {
  const named = isJsonObject(details) ? details['missing_ids'] : undefined;
  if (!Array.isArray(named) || named.length === 0) return { areNamed: false, files: resolvedFiles };
  const ids = new Set<unknown>(named);
  return { areNamed: true, files: resolvedFiles.filter(({ assetId }) => ids.has(assetId)) };
}

/** The id of a new record of the file, from bytes the upstream has still, or we can get. */
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
  if (uploadedId !== undefined) return uploadedId === assetId ? undefined : uploadedId;
  // An output the upstream knows by another id now.
  const asset = await jobs.asset(caller, assetId);
  return asset.ok && asset.value.id !== assetId ? recordId(asset.value.id) : undefined;

  async function recordId(newId: string): Promise<string> {
    // The name may stand for other bytes by now; those stay.
    const row = await files.get(caller.user, file);
    if (row?.assetId === assetId) await files.put({ ...row, assetId: newId });
    return newId;
  }
}
