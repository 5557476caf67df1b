import { type Sample, median } from './watch.ts';

/** A process after a third of the load and at its end, and what of that is too much. */
export type MemoryVerdict = {
  readonly first: Figures;
  readonly last: Figures;
  readonly problems: readonly string[];
};

type Figures = {
  readonly rssMb: number;
  readonly heapMb: number;
  readonly files: number;
  readonly sockets: number;
  readonly resources: number;
  /** The most that waited for slow readers. */
  readonly backlogMb: number;
  readonly droppedFrames: number;
  readonly prompts: number;
};

/** Samples around each of the two moments: slow readers come and go within it. */
const WINDOW_MS = 60_000;
const RSS_GROWTH = 1.1;
/** Connections come and go with what is on its way at the moment. */
const MORE = { files: 3, sockets: 24, resources: 24 } as const;

export function judge(name: string, samples: readonly Sample[], warmAtMs: number): MemoryVerdict {
  const endMs = samples.at(-1)?.atMs ?? 0;
  const first = figuresOf(samples, warmAtMs);
  const last = figuresOf(samples, endMs - WINDOW_MS);
  const problems: string[] = [];
  if (!(last.rssMb <= first.rssMb * RSS_GROWTH)) {
    problems.push(
      `${name}: ${last.rssMb} MB at the end, ${first.rssMb} MB after a third of the load`,
    );
  }
  for (const kind of ['files', 'sockets', 'resources'] as const) {
    if (last[kind] <= first[kind] + MORE[kind]) continue;
    problems.push(`${name}: ${last[kind]} ${kind} at the end, ${first[kind]} after a third`);
  }
  return { first, last, problems };
}

function figuresOf(samples: readonly Sample[], fromMs: number): Figures {
  const some = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= fromMs + WINDOW_MS);
  const megabytes = (bytes: number) => Math.round((bytes / 1024 / 1024) * 10) / 10;
  return {
    rssMb: megabytes(median(some, ({ rssBytes }) => rssBytes)),
    heapMb: megabytes(median(some, ({ heapBytes }) => heapBytes)),
    files: median(some, ({ files }) => files),
    sockets: median(some, ({ sockets }) => sockets),
    resources: median(some, ({ resources }) => total(resources)),
    backlogMb: megabytes(Math.max(...some.map(({ backlogBytes }) => backlogBytes))),
    droppedFrames: Math.max(...some.map(({ droppedFrames }) => droppedFrames)),
    prompts: median(some, ({ prompts }) => prompts),
  };
}

function total(resources: Readonly<Record<string, number>>): number {
  return Object.values(resources).reduce((sum, count) => sum + count, 0);
}
