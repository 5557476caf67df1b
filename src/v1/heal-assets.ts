import type { FileStore } from '../ledger/ledger.ts';
import { isJsonObject } from '../wire/json.ts';
import type { Caller, JobApi, V2Error } from '../wire/jobs.ts';
import type { PlacedFile } from './rewrite.ts';
import { uploadPathOf } from './upload-path.ts';

type HealDeps = {
  readonly jobs: Pick<JobApi, 'asset' | 'assetFromHash'>;
  readonly files: Pick<FileStore, 'get' | 'put'>;
  /** Sends a file once more from where the user keeps it, if they do: the id of its new asset. */
  readonly resend?: ((caller: Caller, file: PlacedFile) => Promise<string | undefined>) | undefined;
};

/** A refused submission, as far as it is about files. */
export type Ailing = { readonly placed: readonly PlacedFile[]; readonly error: V2Error };

/**
 * The files of a submission that was refused with `missing_asset`, with new records for those that
 * are gone upstream though their bytes are still there. The refusal was certain, so the prompt may
 * be sent again, once and under a new key; `undefined` when that would not help: it names the files.
 */
export async function healAssets(
  deps: HealDeps,
  caller: Caller,
  { placed, error }: Ailing,
): Promise<readonly PlacedFile[] | undefined> {
  if (error.code !== 'missing_asset') return undefined;
  const { isSure, files } = missing(placed, error);
  const renewed = new Map<string, string>();
  for (const file of files) {
    if (renewed.has(file.assetId)) continue;
    if (!isSure && (await deps.jobs.asset(caller, file.assetId)).ok) continue;
    const assetId = await renew(deps, caller, file);
    if (assetId === undefined) return undefined;
    renewed.set(file.assetId, assetId);
  }
  if (renewed.size === 0) return undefined;
  return placed.map((file) => ({ ...file, assetId: renewed.get(file.assetId) ?? file.assetId }));
}

/** Those the refusal names; one that names none may mean any. */
function missing(placed: readonly PlacedFile[], { details }: V2Error) {
  const named = isJsonObject(details) ? details['missing_ids'] : undefined;
  if (!Array.isArray(named) || named.length === 0) return { isSure: false, files: placed };
  const ids = new Set<unknown>(named);
  return { isSure: true, files: placed.filter(({ assetId }) => ids.has(assetId)) };
}

/** The id of a new record of the file, from bytes the upstream has still, or we can get. */
async function renew(
  deps: HealDeps,
  caller: Caller,
  file: PlacedFile,
): Promise<string | undefined> {
  const renewed =
    (await mint(deps, caller, file)) ??
    (await deps.resend?.(caller, file)) ??
    (await renamed(deps, caller, file));
  return renewed === file.assetId ? undefined : renewed;
}

/** An output the upstream knows by another id now. */
async function renamed(
  { jobs, files }: HealDeps,
  caller: Caller,
  file: PlacedFile,
): Promise<string | undefined> {
  const asset = await jobs.asset(caller, file.assetId);
  if (!asset.ok || asset.value.id === file.assetId) return undefined;
  const row = await files.get(caller.user, file);
  if (row?.assetId === file.assetId) await files.put({ ...row, assetId: asset.value.id });
  return asset.value.id;
}

async function mint(
  { jobs, files }: HealDeps,
  caller: Caller,
  file: PlacedFile,
): Promise<string | undefined> {
  const { assetId, hash } = file;
  if (hash === null) return undefined;
  const minted = await jobs.assetFromHash(caller, { hash, filePath: uploadPathOf(file) });
  if (!minted.ok || minted.value.id === assetId) return undefined;
  // The name may stand for other bytes by now; those stay.
  const row = await files.get(caller.user, file);
  if (row?.assetId === assetId) await files.put({ ...row, assetId: minted.value.id });
  return minted.value.id;
}
