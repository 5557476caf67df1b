import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import type { AssetStore, CallStore } from '../ledger/ledger.ts';
import type { JobApi, Result } from '../protocol/job-api.ts';
import type { ServerAnswer, ServerFacts, ClientsAnswer } from './api-types.ts';
import { type ConsoleHandlers, requireOperator, scopeOf } from './console-routes.ts';
import { type Figures, STARTED_AT_MS } from './figures.ts';
import { limitsOf } from './server-limits.ts';
import { type DiscoveredUpstream, warningsOf } from './server-warnings.ts';
import { reportOf } from '../migration/usage-report.ts';
import type { UsageCounter } from '../migration/usage-counter.ts';

/** The processes that share a ledger. */
export type ProcessCounts = {
  /** Counts the servers, including this one. */
  readonly countServers: () => Promise<number>;
  /** Counts the processes that wait for jobs of the queue; `undefined` when the number is not known. */
  readonly countWorkers: () => Promise<number | undefined>;
};

type ServerServices = {
  readonly config: Config;
  readonly now: () => number;
  readonly figures: Figures;
  readonly facts: ServerFacts;
  readonly jobs: JobApi;
  readonly assets: AssetStore;
  /**
   * Returns the discovered capabilities of the service that runs the jobs. Absent where this server
   * runs them.
   */
  readonly discovered: (() => DiscoveredUpstream) | undefined;
  readonly processes: ProcessCounts;
};

/** The routes for the operator: health, figures, limits and warnings. */
export function serverHandlers(services: ServerServices): ConsoleHandlers {
  return {
    async 'GET server'(request): Promise<ServerAnswer> {
      requireOperator(request);
      const { figures, facts, jobs, config } = services;
      if (figures.samples().length === 0) await figures.measure();
      const health = await jobs.health();
      // A list is needed only after an accident, and the operator should know before if there is one.
      if (health.ok && services.discovered?.().listing === 'unknown')
        await jobs.list(request.caller, { limit: 1 });
      const current = figures.current();
      const limits = await limitsOf(config, current, await services.assets.totalBytes());
      const workers =
        facts.upstream_kind === 'embedded' ? await services.processes.countWorkers() : null;
      return {
        ...facts,
        host: hostname(),
        node: process.version,
        health: shownHealth(health),
        started_at_ms: STARTED_AT_MS,
        servers: await services.processes.countServers(),
        workers: workers ?? null,
        samples: [...figures.samples(), current],
        limits,
        warnings: warningsOf({
          config,
          limits,
          nowMs: services.now(),
          upstream: facts.upstream,
          isHealthy: health.ok,
          outbox: current.outbox,
          workers: workers ?? null,
          discovered: services.discovered?.(),
        }),
      };
    },
  };
}

function shownHealth(health: Result<unknown>): ServerAnswer['health'] {
  if (health.ok) return { is_good: true, reason: null };
  return { is_good: false, reason: `${health.error.code}: ${health.error.message}` };
}

type ClientsServices = {
  readonly calls: CallStore;
  readonly usageCounter: UsageCounter;
};

/** The route for leaving v1: the clients that still call it. */
export function clientsHandlers(services: ClientsServices): ConsoleHandlers {
  return {
    async 'GET clients'(request): Promise<ClientsAnswer> {
      const { user: own, isAll } = scopeOf(request);
      await services.usageCounter.flush();
      const rows = await services.calls.list();
      return { clients: reportOf(isAll ? rows : rows.filter(({ user }) => user === own)) };
    },
  };
}
