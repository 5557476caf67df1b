import type { RedisConnections } from '../lib/redis.ts';

/** The processes that share a ledger. */
export type ProcessCounts = {
  /** Servers, this one included. */
  readonly countServers: () => Promise<number>;
  /** Connections that wait for jobs of the queue, one for each process that runs some; `undefined`: not known. */
  readonly countWorkers: () => Promise<number | undefined>;
};

const ALONE: ProcessCounts = { countServers: async () => 1, countWorkers: async () => undefined };
/** The page asks several times a second. */
const FRESH_MS = 5000;

/** Counts them by their connections to Redis; without one, a server is alone. */
export function createProcessCounts(
  links: Pick<RedisConnections, 'commands' | 'channels' | 'prefix'> | undefined,
  { now }: { readonly now: () => number },
): ProcessCounts {
  if (links === undefined) return ALONE;
  const { commands, channels, prefix } = links;

  async function countServers(): Promise<number> {
    const reply = (await commands.call('PUBSUB', 'NUMSUB', `${channels}events`)) as unknown[];
    return Math.max(1, Number(reply[1]));
  }

  async function countWorkers(): Promise<number> {
    const list = String(await commands.call('CLIENT', 'LIST'));
    const name = ` name=${prefix}bull:${Buffer.from('queued-jobs').toString('base64')}`;
    return list.split('\n').filter((line) => line.includes(name)).length;
  }

  return {
    countServers: remembered(() => countServers().catch(() => 1), now),
    // A hosted Redis may refuse CLIENT.
    countWorkers: remembered(() => countWorkers().catch(() => undefined), now),
  };
}

function remembered<T>(ask: () => Promise<T>, now: () => number): () => Promise<T> {
  let known: { readonly atMs: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (known === undefined || now() - known.atMs > FRESH_MS) known = { atMs: now(), value: ask() };
    return known.value;
  };
}
