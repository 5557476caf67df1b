import { statfs } from 'node:fs/promises';
import { totalmem } from 'node:os';
import type { Config } from '../config/config.ts';
import type { FigureSample, ServerAnswer } from './api-types.ts';

export type Limit = ServerAnswer['limits'][number];

export type LimitSources = {
  readonly config: Config;
  readonly current: FigureSample;
  readonly diskBytes: () => Promise<number>;
};

/** Returns everything that is limited, and how much of it is used. */
export async function limitsOf({
  config,
  current,
  diskBytes,
}: LimitSources): Promise<readonly Limit[]> {
  const { upstream } = config;
  const ofUpstream: readonly Limit[] =
    upstream.kind === 'embedded'
      ? [counted('Waiting jobs', '--queue-limit', [current.queued, config.engine.maxQueued])]
      : [counted('Outbox (per user)', '', [current.outbox, config.outboxLimit])];
  const used = await diskBytes();
  return [
    ...ofUpstream,
    counted('WebSockets', '--max-sockets', [current.sockets, config.maxSockets]),
    inBytes('Stored files', '--disk-budget', [used, config.engine.assetBudgetBytes]),
    ...(await diskOf(config.dataDir)),
    inBytes('Memory', '', [current.memory_bytes, memoryLimit()]),
  ];
}

type UsedOfLimit = readonly [used: number, limit: number];

function counted(name: string, flag: string, [used, limit]: UsedOfLimit): Limit {
  return { name, flag, used, limit, unit: 'count' };
}

function inBytes(name: string, flag: string, [used, limit]: UsedOfLimit): Limit {
  return { name, flag, used, limit, unit: 'bytes' };
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

/** Returns the memory limit. A container may have less than the machine. */
function memoryLimit(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
