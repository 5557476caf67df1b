import { statfs } from 'node:fs/promises';
import type { Config } from '../config/config.ts';
import { totalMemoryBytes } from '../lib/memory.ts';
import type { FigureSample, ServerAnswer } from './api-types.ts';

export type Limit = ServerAnswer['limits'][number];

/** Returns everything that is limited, and how much of it is used. */
export async function limitsOf(
  config: Config,
  current: FigureSample,
  storedBytes: number,
): Promise<readonly Limit[]> {
  const { upstream, engine } = config;
  return [
    upstream.kind === 'embedded'
      ? counted('Waiting jobs', '--queue-limit', [current.queued, engine.maxQueued])
      : counted('Outbox (per user)', '', [current.outbox, config.outboxLimit]),
    counted('WebSockets', '--max-sockets', [current.sockets, config.maxSockets]),
    inBytes('Stored files', '--disk-budget', [storedBytes, engine.assetBudgetBytes]),
    ...(await diskOf(config.dataDir)),
    inBytes('Memory', '', [current.memory_bytes, totalMemoryBytes()]),
  ];
}

type UsedOfLimit = readonly [used: number, limit: number];

function inBytes(name: string, flag: string, [used, limit]: UsedOfLimit): Limit {
  return { name, flag, used, limit, unit: 'bytes' };
}

function counted(...limit: Parameters<typeof inBytes>): Limit {
  return { ...inBytes(...limit), unit: 'count' };
}

/** Returns the usage of the disk with the data folder, as far as this process may fill it. */
async function diskOf(dataDir: string): Promise<readonly Limit[]> {
  try {
    const { blocks, bfree, bavail, bsize } = await statfs(dataDir);
    const used = (blocks - bfree) * bsize;
    return [inBytes('Disk', '', [used, used + bavail * bsize])];
  } catch {
    return [];
  }
}
