import type Koa from 'koa';
import { sendJson } from '../dialects/errors.ts';
import { completesWithin } from '../lib/completes-within.ts';
import type { JobQueueReason } from '../prompts/pending-reason.ts';
import type { JobApi } from '../protocol/job-api.ts';

/**
 * Why a part of the server is not usable. `reason` is a word that anyone may read, never an
 * address. `degraded`: this server answers as well as any other one would.
 */
export type PartProblem<Reason extends string = string> = {
  readonly status: 'degraded' | 'failed';
  readonly reason: Reason;
};

/** A part of the server that jobs need. */
type NeededPart<Reason extends string = string> = {
  /** The name of the part, shown to anyone: a word, never an address. */
  readonly kind: string;
  /** Rejects when the part cannot be used now. */
  readonly check: () => Promise<PartProblem<Reason> | undefined>;
  /** A part that has not answered after this time is unavailable. Default: 2 seconds. */
  readonly timeoutMs?: number;
};

/**
 * The parts that jobs need. Absent: this server has no such part, for example no queue in front of
 * a service.
 */
export type NeededParts = {
  readonly ledger?: NeededPart;
  readonly queue?: NeededPart<JobQueueReason> & {
    /** Says if a job waits for another run, after one that failed. Absent: jobs have one run. */
    readonly isDelayed?: (jobId: string) => Promise<boolean>;
  };
  readonly files?: NeededPart;
};

/** A probe wants its answer within this time; a part that hangs is unavailable. */
const CHECK_TIMEOUT_MS = 2000;

type HealthServices = {
  readonly jobs: Pick<JobApi, 'health'>;
  readonly parts: NeededParts;
  /** True when the process will stop soon and still takes calls. */
  readonly isStopping: () => boolean;
};

/**
 * `/healthz`: the process answers. `/readyz`: jobs can be run. Neither needs a credential. Both
 * answer 503 when the process will stop soon, so that a load balancer sends new calls elsewhere.
 */
export function healthRoutes({ jobs, parts, isStopping }: HealthServices): Koa.Middleware {
  return (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    if (ctx.path !== '/healthz' && ctx.path !== '/readyz') return next();
    if (isStopping()) return sendJson(ctx, { status: 'stopping' }, 503);
    return ctx.path === '/healthz' ? sendJson(ctx, { status: 'ok' }) : sendReadiness(ctx);
  };

  async function sendReadiness(ctx: Koa.Context): Promise<void> {
    const [health, ...reports] = await Promise.all([
      jobs.health(),
      ...Object.entries(parts).map(async ([name, part]) => [name, await reportOn(part)] as const),
    ]);
    const upstream = health.ok
      ? { status: 'ok', kind: health.value.upstream }
      : { status: 'failed', reason: health.error.code };
    const shown = { ...Object.fromEntries(reports), upstream };
    const failed = reports.find(([, { status }]) => status === 'failed')?.[0];
    const reason = health.ok ? failed && `${failed}_unavailable` : health.error.code;
    if (!health.ok || reason !== undefined) {
      return sendJson(ctx, { status: 'not ready', reason: reason ?? 'unknown', parts: shown }, 503);
    }
    sendJson(ctx, { status: 'ready', upstream: health.value.upstream, parts: shown });
  }
}

async function reportOn({ kind, check, timeoutMs = CHECK_TIMEOUT_MS }: NeededPart) {
  let problem: PartProblem | undefined;
  try {
    const checked = check().then((found) => void (problem = found));
    if (!(await completesWithin(timeoutMs, checked)))
      problem = { status: 'failed', reason: 'no_answer' };
  } catch {
    problem = { status: 'failed', reason: 'unusable' };
  }
  return { status: 'ok', kind, ...problem };
}
