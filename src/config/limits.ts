import type { Flags } from './flags.ts';
import type { WorkerLimits } from './ledger.ts';
import { MEBIBYTE, daysInMs, parseJsonObject } from './parse-values.ts';

/** Limits without a flag of their own. */
export type Limits = {
  /** JSON values in one request body. Parsing more keeps the calls of others waiting. */
  readonly jsonValues: number;
  /** Nodes of one graph. The time that checks and events take grows with them. */
  readonly graphNodes: number;
  /** Of each user. The number of entries is that of the original server; one graph fits into a message. */
  readonly history: {
    readonly count: number;
    readonly bytes: number;
    /** Graph and extra data of one entry. */
    readonly graphBytes: number;
  };
  /** WebSocket connections of one user; by default half of `--max-sockets`, so that others can connect. */
  readonly socketsPerUser?: number;
  /** Requests of one key to `/api/v2`: a thousand a second, which only a faulty program sends. */
  readonly v2RequestsPerMinute: number;
  /** Workflows and other saved files of one user: far more than front ends save. */
  readonly userdataBytes: number;
  /** Prompts of one user that may wait for room at a service: as many as wait in the embedded engine. */
  readonly outboxPrompts: number;
  /** Changes of the defaults of `remote/limits.ts`; `outbox`: of the pace of the outbox. */
  readonly upstream: { readonly [name: string]: unknown };
  /** False: the assets API of v1 is switched off, as on original servers before 0.38. */
  readonly assets: boolean;
  readonly workers: WorkerLimits;
  /** Changes of the defaults of `router/limits.ts`. */
  readonly models: { readonly [name: string]: unknown };
};

export const LIMITS = {
  jsonValues: 500_000,
  graphNodes: 10_000,
  history: { count: 10_000, bytes: 1024 * MEBIBYTE, graphBytes: 16 * MEBIBYTE },
  v2RequestsPerMinute: 60_000,
  userdataBytes: 1024 * MEBIBYTE,
  outboxPrompts: 1000,
  assets: true,
  upstream: {},
  workers: {},
  models: {},
} as const satisfies Limits;

/** Reads the hidden `--limits`, with which tests change single limits; a later one adds to an earlier. */
export function readLimits(texts: readonly string[] = []): Limits {
  const limits: { [name: string]: unknown } = { ...LIMITS };
  for (const [name, value] of texts.flatMap((text) =>
    Object.entries(parseJsonObject('--limits', text)),
  ))
    limits[name] = typeof value === 'object' ? { ...(limits[name] as object), ...value } : value;
  return limits as Limits;
}

/** The flags that limit the embedded engine, in servers and workers. */
export const ENGINE_FLAGS = [
  'concurrency',
  'jobTimeout',
  'jobMemory',
  'diskBudget',
  'retentionDays',
] as const;

export function engineLimits(flags: Pick<Flags, (typeof ENGINE_FLAGS)[number]>) {
  return {
    concurrency: flags.concurrency,
    jobTimeMs: flags.jobTimeout * 1000,
    jobMemoryBytes: flags.jobMemory * MEBIBYTE,
    assetBudgetBytes: flags.diskBudget * MEBIBYTE,
    retentionMs: daysInMs(flags.retentionDays),
  };
}
