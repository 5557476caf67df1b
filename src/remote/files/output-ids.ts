import { LRUCache } from 'lru-cache';
import type { Account } from '../calls/accounts.ts';
import { engineFileOf, isSameEngineFile } from '../../protocol/engine-file.ts';
import type { UpstreamCapabilities } from '../capabilities.ts';
import type { Snapshots } from '../events/snapshots.ts';
import { bytesAtMost } from '../../lib/lru-size.ts';

/**
 * The current ids of outputs. The self-hosted server signs them with a secret that it loses at a
 * restart, unless it has a state directory. The job then lists the same files under other ids.
 */
export interface OutputIds {
  /** Returns the known current id of the file. */
  readonly current: (account: Account, assetId: string) => string;
  /** Reads the job that made the file. `undefined`: the file has no other id. */
  renew(account: Account, assetId: string): Promise<string | undefined>;
}

const MAX_BYTES = 4 * 1024 * 1024;

export function createOutputIds({
  snapshots,
  capabilities,
}: {
  readonly snapshots: Snapshots;
  readonly capabilities: UpstreamCapabilities;
}): OutputIds {
  const currentIds = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));
  return {
    current: ({ id }, assetId) => currentIds.get(`${id} ${assetId}`) ?? assetId,
    async renew(account, assetId) {
      const jobId = engineFileOf(assetId)?.jobId;
      if (jobId === undefined) return undefined;
      const read = await snapshots.refresh(account, jobId);
      const outputs = read.ok ? read.value.outputs : [];
      const sameFile = outputs.find(({ id }) => isSameEngineFile(id, assetId));
      if (!sameFile || sameFile.id === assetId) return undefined;
      capabilities.changesIds = true;
      currentIds.set(`${account.id} ${assetId}`, sameFile.id);
      return sameFile.id;
    },
  };
}
