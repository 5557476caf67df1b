import { hostname } from 'node:os';
import type { FigureSample, OtherServer } from './api-types.ts';
import { MAX_SAMPLES, STARTED_AT_MS } from './figures.ts';
import type { RedisConnections } from '../redis/redis.ts';

type SharedFiguresOptions = {
  readonly links: Pick<RedisConnections, 'commands' | 'prefix'> | undefined;
  /** The unique id of this process. */
  readonly server: string;
  readonly version: string;
};

/** The facts that each server stores about itself. */
type StoredFigures = Omit<OtherServer, 'samples'> & { readonly sample: FigureSample };

type Known = {
  readonly figures: OtherServer;
  /** The time when its latest measurement was first read, by the clock of this process. */
  readonly readAtMs: number;
};

/** A server without a measurement for this long has stopped, or cannot reach Redis. */
const SILENT_MS = 35_000;
const MAX_SERVERS = 50;

/**
 * Shares figures between all servers over one Redis. Each stores its latest measurement, reads
 * those of the others and keeps an hour of them: behind a load balancer with sticky sessions, a
 * page reaches one server only. Without Redis there are no other servers.
 */
export function createSharedFigures({ links, ...own }: SharedFiguresOptions) {
  const key = `${links?.prefix ?? ''}figures`;
  let known: ReadonlyMap<string, Known> = new Map();
  let lastMs = 0;

  async function exchange(sample: FigureSample): Promise<void> {
    if (links === undefined || links.commands.status !== 'ready') return;
    const stored: StoredFigures = {
      server: own.server,
      host: hostname(),
      version: own.version,
      started_at_ms: STARTED_AT_MS,
      sample,
    };
    const replies = await links.commands
      .multi()
      .hset(key, own.server, JSON.stringify(stored))
      .pexpire(key, SILENT_MS)
      .hgetall(key)
      .exec();
    const all = (replies?.at(-1)?.[1] ?? {}) as Readonly<Record<string, string>>;
    lastMs = sample.at_ms;
    const silent = remember(all, lastMs);
    if (silent.length > 0) await links.commands.hdel(key, ...silent);
  }

  /** Keeps the new samples. Returns the servers that are silent, by the clock of this process. */
  function remember(all: Readonly<Record<string, string>>, nowMs: number): readonly string[] {
    const found = Object.values(all)
      .map((text) => JSON.parse(text) as StoredFigures)
      .filter(({ server }) => server !== own.server)
      .slice(0, MAX_SERVERS);
    known = new Map(
      found.map((one) => [one.server, withSample(known.get(one.server), one, nowMs)]),
    );
    return [...known].filter(([, { readAtMs }]) => isSilent(readAtMs, nowMs)).map(([id]) => id);
  }

  return {
    /** Stores a measurement of this server, and reads those of the others. */
    exchange,
    others: (): readonly OtherServer[] =>
      [...known.values()]
        .filter(({ readAtMs }) => !isSilent(readAtMs, lastMs))
        .map(({ figures }) => figures),
  };
}

function isSilent(readAtMs: number, nowMs: number): boolean {
  return nowMs - readAtMs > SILENT_MS;
}

function withSample(
  before: Known | undefined,
  { sample, ...server }: StoredFigures,
  nowMs: number,
): Known {
  const samples = before?.figures.samples ?? [];
  const isSeen = samples.at(-1)?.at_ms === sample.at_ms;
  if (before !== undefined && isSeen) return before;
  const figures = { ...server, samples: [...samples.slice(1 - MAX_SAMPLES), sample] };
  return { figures, readAtMs: nowMs };
}
