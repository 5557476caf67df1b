import type { Holdover } from '../support/processes/holdover.ts';
import { footprint } from '../support/processes/invariants.ts';
import { scrape } from '../support/processes/scrape.ts';

/** The resources of one process at one moment. */
export type Sample = {
  readonly atMs: number;
  readonly rssBytes: number;
  readonly files: number;
  readonly sockets: number;
  /** The resources that keep its event loop running (`process.getActiveResourcesInfo`), by kind. */
  readonly resources: Readonly<Record<string, number>>;
  readonly heapBytes: number;
  readonly backlogBytes: number;
  readonly droppedFrames: number;
  /** Prompts on their way. */
  readonly prompts: number;
};

/** A process being watched from the outside. */
export type Watch = { readonly samples: readonly Sample[]; stop(): void };

const EVERY_MS = 2500;

export function watch(holdover: Holdover): Watch {
  const samples: Sample[] = [];
  const timer = setInterval(() => {
    sampleOf(holdover, performance.now()).then(
      (sample) => samples.push(sample),
      () => {},
    );
  }, EVERY_MS);
  return { samples, stop: () => clearInterval(timer) };
}

async function sampleOf(holdover: Holdover, atMs: number): Promise<Sample> {
  const { text, of } = await scrape(holdover.url);
  const kinds = text.matchAll(/^nodejs_active_resources\{type="(\w+)"\} (\d+)$/gm);
  return {
    atMs,
    ...footprint(holdover),
    resources: Object.fromEntries([...kinds].map(([, kind, count]) => [kind, Number(count)])),
    heapBytes: of('nodejs_heap_size_used_bytes'),
    backlogBytes: of('holdover_websocket_backlog_bytes'),
    droppedFrames: of('holdover_websocket_dropped_frames_total'),
    prompts: ['waiting', 'queued', 'running', 'ending']
      .map((state) => of(`holdover_jobs{state="${state}"}`))
      .reduce((sum, count) => sum + count, 0),
  };
}

/** The middle of what some samples say. */
export function median(samples: readonly Sample[], read: (sample: Sample) => number): number {
  const values = samples.map(read).toSorted((a, b) => a - b);
  return values[Math.floor(values.length / 2)] ?? Number.NaN;
}
