import type { IncomingMessage, ServerResponse } from 'node:http';
import type Koa from 'koa';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Result } from '../protocol/job-api.ts';
import type { CallHandlers, PortCall } from './observed-port.ts';

/** Where things are counted that are looked up at each scrape. */
export type MeteredServices = {
  /** Prompts between their `POST` and their history, by state. */
  readonly livePrompts: { countByState(): Readonly<Record<string, number>> };
  readonly hub: { count(): number; pendingBytes(): number; droppedFrames(): number };
  readonly prompts: { outboxDepth(): number };
  readonly upstream: { openStreams(): number };
};

/** Totals since the start of the process. */
export type MetricTotals = {
  readonly ended: number;
  /** The number of requests that took at most so many seconds, by that bound; without sockets and event streams. */
  readonly requests: ReadonlyMap<number, number>;
};

/** Routes whose answers last as long as a client listens. */
const LONG_ROUTES: ReadonlySet<string> = new Set(['/ws', '/api/v2/*']);

type BucketValue = {
  readonly value: number;
  readonly metricName?: string;
  readonly labels: { readonly [name: string]: string | number | undefined };
};

function bucketsOf(values: readonly BucketValue[]): ReadonlyMap<number, number> {
  const buckets = new Map<number, number>();
  for (const { value, metricName, labels } of values) {
    const { le, route } = labels;
    if (metricName?.endsWith('_bucket') !== true || LONG_ROUTES.has(String(route))) continue;
    const bound = le === '+Inf' ? Infinity : Number(le);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  return buckets;
}

type MetricsOptions = {
  readonly version: string;
  readonly upstreamKind: string;
  /** `undefined`: not authenticated. */
  readonly identify: (request: IncomingMessage) => object | undefined;
};

/** The library keeps the type and labels of a metric, and leaves them out of its types. */
type Instrument = {
  readonly name: string;
  readonly type: string;
  readonly labelNames?: readonly string[];
};

const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** The interval at which the event loop's delay is measured, which wakes the process. */
const EVENT_LOOP_RESOLUTION_MS = 20;

/** The counts of one server, for Prometheus. No label holds anything a client or an upstream chose. */
export class Metrics {
  readonly #identify: MetricsOptions['identify'];
  readonly #registry = openRegistry();
  readonly #registers = [this.#registry];
  readonly #build = new Gauge({
    name: 'holdover_build_info',
    help: 'Always 1; which Holdover this is and what runs its jobs.',
    labelNames: ['version', 'upstream'],
    registers: this.#registers,
  });
  readonly #requests = new Counter({
    name: 'holdover_http_requests_total',
    help: 'Requests by method, route pattern and outcome: a class of status, or cut_off.',
    labelNames: ['method', 'route', 'outcome'],
    registers: this.#registers,
  });
  readonly #durations = new Histogram({
    name: 'holdover_http_request_duration_seconds',
    help: 'From the request headers to the last byte of the answer.',
    labelNames: ['route'],
    buckets: DURATION_BUCKETS,
    registers: this.#registers,
  });
  readonly #calls = new Counter({
    name: 'holdover_upstream_calls_total',
    help: 'v2 calls that v1 calls became, by operation and outcome: ok, 4xx, 5xx, or broken.',
    labelNames: ['operation', 'outcome'],
    registers: this.#registers,
  });
  readonly #callDurations = new Histogram({
    name: 'holdover_upstream_call_duration_seconds',
    help: 'From a v2 call to its answer; of downloads and event streams, to their first byte.',
    labelNames: ['operation'],
    buckets: DURATION_BUCKETS,
    registers: this.#registers,
  });
  readonly #ended = new Counter({
    name: 'holdover_jobs_ended_total',
    help: 'Prompts that have their history entry, by how they ended.',
    labelNames: ['outcome'],
    registers: this.#registers,
  });

  constructor({ version, upstreamKind, identify }: MetricsOptions) {
    this.#identify = identify;
    this.#build.set({ version, upstream: upstreamKind }, 1);
  }

  /** Counts requests by the route that answered them, when the answer is complete or cut off. */
  readonly count: Koa.Middleware = (ctx, next) => {
    const startedAt = performance.now();
    const { req, res } = ctx;
    const { method: given = '' } = req;
    const method = METHODS.has(given) ? given : 'other';
    res.once('close', () => {
      const route = routeOf(ctx);
      this.#requests.inc({ method, route, outcome: outcomeOf(res) });
      this.#durations.observe({ route }, (performance.now() - startedAt) / 1000);
    });
    return next();
  };

  /** `GET /metrics` for authenticated callers; others fall through and get 401. */
  readonly serve: Koa.Middleware = (ctx, next) => {
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (ctx.path !== '/metrics' || !isRead || !this.#identify(ctx.req)) return next();
    return this.#send(ctx);
  };

  async #send(ctx: Koa.Context): Promise<void> {
    ctx.state.answeredBy = '/metrics';
    ctx.body = await this.#registry.metrics();
    ctx.set('Content-Type', this.#registry.contentType);
  }

  onUpgrade(status: number): void {
    this.#requests.inc({ method: 'GET', route: '/ws', outcome: classOf(status) });
  }

  /** Counts the v2 calls, and how long they take. */
  readonly countCall = ({ operation }: PortCall): CallHandlers => {
    const note = (outcome: CallOutcome, ms: number): void => {
      this.#calls.inc({ operation, outcome });
      this.#callDurations.observe({ operation }, ms / 1000);
    };
    return {
      onAnswer: (answer, ms) => note(callOutcomeOf(answer), ms),
      onFailure: (ms) => note('broken', ms),
    };
  };

  onPromptEnded(outcome: string): void {
    this.#ended.inc({ outcome });
  }

  /**
   * Everything that is exported.
   * @internal
   */
  instruments(): readonly Instrument[] {
    return this.#registry.getMetricsAsArray() as unknown as readonly Instrument[];
  }

  /** Totals since the start, for figures over a time. */
  async totals(): Promise<MetricTotals> {
    const [ended, observed] = await Promise.all([this.#ended.get(), this.#durations.get()]);
    const endedTotal = ended.values.reduce((sum, { value }) => sum + value, 0);
    return { ended: endedTotal, requests: bucketsOf(observed.values) };
  }

  /** Reads these services at each scrape. */
  watch({ livePrompts, hub, prompts, upstream }: MeteredServices): void {
    new Gauge({
      name: 'holdover_jobs',
      help: 'Prompts without a history entry yet that this process leads, by state.',
      labelNames: ['state'],
      registers: this.#registers,
      collect() {
        for (const [state, count] of Object.entries(livePrompts.countByState()))
          this.set({ state }, count);
      },
    });
    this.#gauge(
      'holdover_outbox_depth',
      'Accepted prompts that wait until the upstream has room.',
      () => prompts.outboxDepth(),
    );
    this.#gauge(
      'holdover_upstream_streams',
      'Event streams open to the upstream; the embedded engine needs none.',
      () => upstream.openStreams(),
    );
    this.#watchSockets(hub);
  }

  #watchSockets(hub: MeteredServices['hub']): void {
    this.#gauge('holdover_websockets', 'Open WebSocket connections.', () => hub.count());
    this.#gauge(
      'holdover_websocket_backlog_bytes',
      'Bytes that wait for WebSocket clients to read them.',
      () => hub.pendingBytes(),
    );
    new Counter({
      name: 'holdover_websocket_dropped_frames_total',
      help: 'Previews a slow WebSocket client did not get because newer ones came first.',
      registers: this.#registers,
      collect() {
        this.reset();
        this.inc(hub.droppedFrames());
      },
    });
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: this.#registers,
      collect() {
        this.set(read());
      },
    });
  }
}

function openRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: EVENT_LOOP_RESOLUTION_MS,
  });
  return registry;
}

/** Labels the metrics of a middleware that is not a router. */
export function withRouteLabel(route: string, middleware: Koa.Middleware): Koa.Middleware {
  return (ctx, next) => {
    const earlier = ctx.state.answeredBy;
    // An answer may be counted before its middleware returns.
    ctx.state.answeredBy = route;
    return middleware(ctx, () => {
      ctx.state.answeredBy = earlier;
      return next();
    });
  };
}

/** Route patterns only: paths are chosen by callers and unbounded. */
export function routeOf(ctx: Koa.Context): string {
  const { _matchedRoute: matched } = ctx as { readonly _matchedRoute?: unknown };
  if (typeof matched === 'string') return matched;
  return ctx.state.answeredBy ?? 'none';
}

/** `broken`: there is no answer, something of our own or of the connection gave way. */
type CallOutcome = 'ok' | '4xx' | '5xx' | 'broken';

function callOutcomeOf(answer: Result<unknown>): CallOutcome {
  if (answer.ok) return 'ok';
  return answer.error.status >= 500 ? '5xx' : '4xx';
}

function outcomeOf(res: ServerResponse): string {
  return res.writableFinished ? classOf(res.statusCode) : 'cut_off';
}

function classOf(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}
