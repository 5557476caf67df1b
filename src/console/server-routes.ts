import type { Config } from '../config/config.ts';
import type { AssetStore } from '../ledger/ledger.ts';
import type { JobApi } from '../protocol/job-api.ts';
import type { ServerAnswer, SessionAnswer } from './api-types.ts';
import { type ConsoleHandlers, requireOperator } from './console-routes.ts';
import { type Figures, SAMPLE_INTERVAL_MS } from './figures.ts';

type ServerServices = {
  readonly config: Pick<
    Config,
    | 'queueLimit'
    | 'maxSockets'
    | 'diskBudgetBytes'
    | 'outboxLimit'
    | 'deprecationSettings'
    | 'upstream'
  >;
  readonly now: () => number;
  readonly figures: Figures;
  readonly facts: Pick<SessionAnswer, 'version' | 'upstream' | 'upstream_kind'>;
  readonly jobs: Pick<JobApi, 'health'>;
  readonly assets: Pick<AssetStore, 'totalBytes'>;
};

type Limit = ServerAnswer['limits'][number];
type Warning = ServerAnswer['warnings'][number];

/** A limit that is this full is worth a warning. */
const NEARLY = 0.85;
const STARTED_AT_MS = Date.now() - process.uptime() * 1000;

/** Health, figures, limits and warnings, for the operator. */
export function serverHandlers(services: ServerServices): ConsoleHandlers {
  return {
    async 'GET server'({ access }): Promise<ServerAnswer> {
      requireOperator(access);
      const { figures, facts, jobs } = services;
      if (figures.samples().length === 0) await figures.measure();
      const health = await jobs.health();
      const limits = await limitsOf(services);
      return {
        ...facts,
        node: process.version,
        health: {
          is_good: health.ok,
          reason: health.ok ? null : `${health.error.code}: ${health.error.message}`,
        },
        started_at_ms: STARTED_AT_MS,
        sample_interval_ms: SAMPLE_INTERVAL_MS,
        samples: figures.samples(),
        limits,
        warnings: warningsOf(services, limits, health.ok),
      };
    },
  };
}

async function limitsOf({ config, figures, assets }: ServerServices): Promise<readonly Limit[]> {
  const last = figures.samples().at(-1);
  const isEmbedded = config.upstream.kind === 'embedded';
  const limits: Limit[] = [
    {
      name: 'WebSockets',
      flag: '--max-sockets',
      used: last?.sockets ?? 0,
      limit: config.maxSockets,
      unit: 'count',
    },
  ];
  if (!isEmbedded) return limits;
  const diskBytes = await assets.totalBytes();
  return [
    {
      name: 'Waiting jobs',
      flag: '--queue-limit',
      used: last?.queued ?? 0,
      limit: config.queueLimit,
      unit: 'count',
    },
    {
      name: 'Files',
      flag: '--disk-budget',
      used: diskBytes,
      limit: config.diskBudgetBytes,
      unit: 'bytes',
    },
    ...limits,
  ];
}

function warningsOf(
  { config, now, facts, figures }: ServerServices,
  limits: readonly Limit[],
  isHealthy: boolean,
): readonly Warning[] {
  const warnings: Warning[] = [];
  if (!isHealthy) {
    warnings.push({
      code: 'upstream_unhealthy',
      text: `The upstream (${facts.upstream}) does not answer as it should: accepted prompts wait.`,
      action: 'Start it again, or check its address and key.',
    });
  }
  for (const { name, flag, used, limit } of limits) {
    if (used < limit * NEARLY) continue;
    const text = `${name}: ${Math.round((used / limit) * 100)} % of the limit are used.`;
    warnings.push({ code: 'limit_near', text, action: `Raise ${flag}, or make room.` });
  }
  const outbox = figures.samples().at(-1)?.outbox ?? 0;
  if (outbox > 0) {
    warnings.push({
      code: 'outbox',
      text: `${outbox} accepted prompts wait until the upstream has room.`,
      action:
        'They are sent by themselves; look at the health of the upstream when the number grows.',
    });
  }
  for (const { fromMs, toMs } of config.deprecationSettings.brownouts) {
    if (toMs !== undefined && toMs <= now()) continue;
    const isOn = fromMs === undefined || fromMs <= now();
    const from = fromMs === undefined ? '' : ` from ${new Date(fromMs).toISOString()}`;
    const to = toMs === undefined ? '' : ` until ${new Date(toMs).toISOString()}`;
    warnings.push({
      code: 'brownout',
      text: isOn ? `A brownout of v1 is on${to}.` : `A brownout of v1 is planned${from}${to}.`,
      action: 'Clients that it affects are shown under Leaving v1.',
    });
  }
  return warnings;
}
