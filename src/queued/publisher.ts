import { createFeed, type Feed } from '../engine/events.ts';
import type { LiveJob } from '../engine/live.ts';
import type { JobEvent } from '../wire/jobs.ts';
import { dropOldestPreview } from '../wire/previews.ts';
import { encodeEvent, encodePreview } from './codec.ts';
import { type Heard, type Held, type Item, type Runs, fieldsOf } from './runs.ts';

/** Every preview that is kept goes through the log of a durable Redis. */
const KEEP_EVERY_MS = 1000;
/** Events that go out in one script. */
const BATCH = 200;
/**
 * Outputs and shown results so far are written whole, for readers of the job while it runs.
 * Of a large job not at every change: when there is a quarter more of it, or so long after the last time.
 */
const WHOLE = { uncounted: 100, growth: 1.25, everyMs: 1000 } as const;

/** The feed of a job that others listen to. */
export type Publisher = {
  readonly feed: Feed;
  /** Resolves when everything told so far has arrived, or is in vain. */
  drain(): Promise<void>;
};

export type PublisherDeps = {
  readonly runs: Pick<Runs, 'append'>;
  readonly held: Held;
  readonly job: () => LiveJob;
  readonly clock: () => number;
  /** Told after every batch. */
  onHeard(heard: Heard): void;
  onError(error: unknown): void;
};

/** Tells in order and gathers meanwhile: while Redis is away all events wait, and the latest previews. */
export function createPublisher(deps: PublisherDeps): Publisher {
  const feed = createFeed({ status: 'running' });
  const waiting: Item[] = [];
  const changed = new Set<string>();
  let told = 0;
  let keptAtMs = 0;
  let isOver = false;
  let sending: Promise<void> | undefined;
  let later: NodeJS.Timeout | undefined;
  const whole = {
    output: { count: 0, writtenCount: 0, writtenAtMs: 0 },
    x_node: { count: 0, writtenCount: 0, writtenAtMs: 0 },
  };

  function isDue(name: string): boolean {
    if (name !== 'output' && name !== 'x_node') return true;
    const { count, writtenCount, writtenAtMs } = whole[name];
    const isSmall = count <= WHOLE.uncounted || count >= WHOLE.growth * writtenCount;
    return isSmall || Math.abs(deps.clock() - writtenAtMs) >= WHOLE.everyMs;
  }

  function takeDue(): ReadonlySet<string> {
    const due = new Set([...changed].filter(isDue));
    for (const name of due) {
      changed.delete(name);
      if (name !== 'output' && name !== 'x_node') continue;
      whole[name].writtenCount = whole[name].count;
      whole[name].writtenAtMs = deps.clock();
    }
    return due;
  }

  async function send(): Promise<void> {
    // Whatever is said in the same turn goes along.
    await Promise.resolve();
    clearTimeout(later);
    while ((waiting.length > 0 || [...changed].some(isDue)) && !isOver) {
      const items = waiting.splice(0, BATCH);
      const fields = fieldsOf(deps.job(), takeDue());
      const heard = await deps.runs.append(deps.held, items, fields);
      isOver = heard === 'stale';
      deps.onHeard(heard);
    }
    if (changed.size > 0 && !isOver) later = setTimeout(kick, WHOLE.everyMs).unref();
  }

  function kick(): void {
    sending ??= send()
      .catch((error: unknown) => {
        isOver = true;
        deps.onError(error);
      })
      .finally(() => (sending = undefined));
  }

  function emit(event: JobEvent): void {
    feed.emit(event);
    if (isOver) return;
    if (event.event === 'preview') {
      dropOldestPreview(waiting, ({ kind }) => kind === 'p');
      const isKept = Math.abs(deps.clock() - keptAtMs) >= KEEP_EVERY_MS;
      if (isKept) keptAtMs = deps.clock();
      waiting.push({ kind: 'p', bytes: encodePreview(event), isKept });
    } else {
      waiting.push({ kind: 'e', n: ++told, text: encodeEvent(event) });
      changed.add(event.event);
      if (event.event === 'output' || event.event === 'x_node') whole[event.event].count++;
    }
    kick();
  }

  return {
    feed: { ...feed, emit },
    async drain() {
      while (sending) await sending;
      clearTimeout(later);
    },
  };
}
