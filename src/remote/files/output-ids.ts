import { LRUCache } from 'lru-cache';
import type { Account } from '../calls/accounts.ts';
import { engineFileOf, isSameEngineFile } from '../../protocol/engine-file.ts';
import { type Result, isGone } from '../../protocol/job-api.ts';
import type { UpstreamCapabilities } from '../capabilities.ts';
import type { Snapshots } from '../events/snapshots.ts';
import { bytesAtMost } from '../../lib/lru-size.ts';

/** Reads an output by its current id, and once more if the id has changed. */
export type ReadOutput = <T>(
  account: Account,
  assetId: string,
  read: (currentId: string) => Promise<Result<T>>,
) => Promise<Result<T>>;

const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Creates the reader. The self-hosted server signs the ids of outputs with a secret that it loses at
 * a restart, unless it has a state directory. The job then lists the same files under other ids.
 */
export function createOutputReader(
  snapshots: Snapshots,
  capabilities: UpstreamCapabilities,
): ReadOutput {
  const currentIds = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));

  /** Reads the job that made the file. `undefined`: the file has no other id. */
  async function renewedId(account: Account, assetId: string): Promise<string | undefined> {
    const jobId = engineFileOf(assetId)?.jobId;
    if (jobId === undefined) return undefined;
    const job = await snapshots.refresh(account, jobId);
    const outputs = job.ok ? job.value.outputs : [];
    const sameFile = outputs.find(({ id }) => isSameEngineFile(id, assetId));
    return sameFile?.id === assetId ? undefined : sameFile?.id;
  }

  return async (account, assetId, read) => {
    const name = `${account.id} ${assetId}`;
    const knownId = currentIds.get(name) ?? assetId;
    const first = await read(knownId);
    if (first.ok || !isGone(first.error)) return first;
    // Renewed once: a service may state another id each time.
    const renewed = await renewedId(account, knownId);
    if (renewed === undefined) return first;
    capabilities.changesIds = true;
    currentIds.set(name, renewed);
    return read(renewed);
  };
}
