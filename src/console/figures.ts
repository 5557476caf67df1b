import type { MeteredServices, MetricTotals } from '../observability/metrics.ts';
import type { FigureSample } from './api-types.ts';

type FigureSources = {
  readonly now: () => number;
  readonly totals: () => Promise<MetricTotals>;
  /** Those that are measured for `/metrics`. */
  readonly services: MeteredServices;
  readonly diskBytes: () => Promise<number>;
};

/** The time when this process began, in milliseconds since 1970. */
export const STARTED_AT_MS = Date.now() - process.uptime() * 1000;
const SAMPLE_INTERVAL_MS = 10_000;
/** The samples of one hour. */
const MAX_SAMPLES = 360;
/** The interval for measuring the disk. It is longer, because summing the sizes of all files takes time. */
const DISK_EVERY_MS = 60_000;

/** Measures the server every ten seconds, and keeps the samples of an hour. */
export class Figures {
  readonly #sources: FigureSources;
  readonly #samples: FigureSample[] = [];
  readonly #timer: NodeJS.Timeout;
  #last: Measured | undefined;
  #rates: Rates = NO_RATES;
  #disk = { atMs: -Infinity, bytes: 0 };

  constructor(sources: FigureSources) {
    this.#sources = sources;
    // While the ledger is unavailable, the figures have a gap.
    this.#timer = setInterval(() => void this.measure().catch(() => {}), SAMPLE_INTERVAL_MS);
    this.#timer.unref();
  }

  async measure(): Promise<void> {
    const { totals: readTotals, now, diskBytes } = this.#sources;
    const totals = await readTotals();
    const atMs = now();
    if (atMs - this.#disk.atMs >= DISK_EVERY_MS) this.#disk = { atMs, bytes: await diskBytes() };
    this.#rates = this.#last === undefined ? NO_RATES : ratesBetween(this.#last, { atMs, totals });
    this.#last = { atMs, totals };
    this.#samples.push(this.current());
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
  }

  /** The counts of this moment, with the latest rates and use of the disk. */
  current(): FigureSample {
    const { livePrompts, prompts, hub, upstream } = this.#sources.services;
    const states = livePrompts.countByState();
    return {
      at_ms: this.#sources.now(),
      queued: (states['waiting'] ?? 0) + (states['queued'] ?? 0),
      running: (states['running'] ?? 0) + (states['ending'] ?? 0),
      outbox: prompts.outboxDepth(),
      sockets: hub.count(),
      upstream_streams: upstream.openStreams(),
      memory_bytes: process.memoryUsage.rss(),
      disk_bytes: this.#disk.bytes,
      ...this.#rates,
    };
  }

  samples(): readonly FigureSample[] {
    return this.#samples;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

type Rates = Record<
  'ended_per_minute' | 'requests_per_second' | 'latency_p50_ms' | 'latency_p95_ms',
  number | null
>;

const NO_RATES: Rates = {
  ended_per_minute: null,
  requests_per_second: null,
  latency_p50_ms: null,
  latency_p95_ms: null,
};

type Measured = { readonly atMs: number; readonly totals: MetricTotals };

function ratesBetween(from: Measured, to: Measured) {
  const seconds = Math.max(0.001, (to.atMs - from.atMs) / 1000);
  const buckets = [...to.totals.requests]
    .map(([bound, total]) => [bound, total - (from.totals.requests.get(bound) ?? 0)] as const)
    .toSorted(([a], [b]) => a - b);
  const requests = buckets.at(-1)?.[1] ?? 0;
  return {
    ended_per_minute: ((to.totals.ended - from.totals.ended) / seconds) * 60,
    requests_per_second: requests / seconds,
    latency_p50_ms: quantileMs(buckets, 0.5),
    latency_p95_ms: quantileMs(buckets, 0.95),
  };
}

/**
 * Returns the time within which this share of the requests was answered, from cumulative buckets.
 * Between two bounds, requests count as evenly distributed. Returns `null` when there were no requests.
 * @internal
 */
export function quantileMs(
  buckets: readonly (readonly [boundSeconds: number, total: number])[],
  share: number,
): number | null {
  const wanted = (buckets.at(-1)?.[1] ?? 0) * share;
  if (wanted === 0) return null;
  let [lowerBound, lowerTotal] = [0, 0];
  for (const [bound, total] of buckets) {
    if (total >= wanted) {
      if (bound === Infinity) return lowerBound * 1000;
      const part = (wanted - lowerTotal) / Math.max(1, total - lowerTotal);
      return (lowerBound + (bound - lowerBound) * part) * 1000;
    }
    [lowerBound, lowerTotal] = [bound, total];
  }
  return null;
}
