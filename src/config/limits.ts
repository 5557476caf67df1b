import type { Flags } from './flags.ts';
import type { WorkerLimits } from './ledger.ts';
import { MEBIBYTE, daysInMs, parseJsonObject } from './parse-values.ts';

type ChangedDefaults = { readonly [name: string]: unknown };

/** Limits without a flag of their own. */
export const LIMITS = {
  /** JSON values in one request body. Parsing more keeps the calls of others waiting. */
  jsonValues: 500_000,
  /** Nodes of one graph. The time that checks and events take grows with them. */
  graphNodes: 10_000,
  /**
   * Of each user. The number of entries is that of the original server; one graph fits into a
   * message. `graphBytes`: graph and extra data of one entry.
   */
  history: { count: 10_000, bytes: 1024 * MEBIBYTE, graphBytes: 16 * MEBIBYTE },
  /** Requests of one key to `/api/v2`: a thousand a second, which only a faulty program sends. */
  v2RequestsPerMinute: 60_000,
  /** Workflows and other saved files of one user: far more than front ends save. */
  userdataBytes: 1024 * MEBIBYTE,
  /** Prompts of one user that may wait for room at a service: as many as wait in the embedded engine. */
  outboxPrompts: 1000,
  /** False: the assets API of v1 is switched off, as on original servers before 0.38. */
  assets: true,
  /** Changes of the defaults of `remote/limits.ts`; `outbox`: of the pace of the outbox. */
  upstream: {} as ChangedDefaults,
  workers: {} as WorkerLimits,
  /** Changes of the defaults of `router/limits.ts`. */
  models: {} as ChangedDefaults,
};

export type Limits = Readonly<typeof LIMITS> & {
  /** WebSocket connections of one user; by default half of `--max-sockets`, so that others can connect. */
  readonly socketsPerUser?: number;
};

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

type EngineSetting =
  | 'concurrency'
  | 'jobTimeMs'
  | 'jobMemoryBytes'
  | 'assetBudgetBytes'
  | 'retentionMs';

export function engineLimits(
  flags: Pick<Flags, (typeof ENGINE_FLAGS)[number]>,
): Readonly<Record<EngineSetting, number>> {
  return {
    concurrency: flags.concurrency,
    jobTimeMs: flags.jobTimeout * 1000,
    jobMemoryBytes: flags.jobMemory * MEBIBYTE,
    assetBudgetBytes: flags.diskBudget * MEBIBYTE,
    retentionMs: daysInMs(flags.retentionDays),
  };
}
