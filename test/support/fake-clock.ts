import type { Clock } from '../../src/lib/clock.ts';

type Sleeper = { readonly wakesAtMs: number; readonly wake: () => void };

/** A clock that stands still until the test advances it. */
export type FakeClock = Clock & {
  /** Moves time forward and wakes every sleeper that is due, in the order they are due. */
  advance(ms: number): Promise<void>;
  /** How many callers sleep now. */
  readonly sleeping: () => number;
};

/** `turns`: how often the event loop runs after each step of time. */
export function createFakeClock(startMs = 1_000_000, turns = 10): FakeClock {
  const sleepers = new Set<Sleeper>();
  let nowMs = startMs;

  function nextDue(untilMs: number): Sleeper | undefined {
    const due = [...sleepers].filter(({ wakesAtMs }) => wakesAtMs <= untilMs);
    return due.toSorted((a, b) => a.wakesAtMs - b.wakesAtMs)[0];
  }

  return {
    now: () => nowMs,
    sleeping: () => sleepers.size,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(abortError());
        const sleeper = { wakesAtMs: nowMs + ms, wake };
        function wake(): void {
          signal?.removeEventListener('abort', stop);
          resolve();
        }
        function stop(): void {
          sleepers.delete(sleeper);
          reject(abortError());
        }
        sleepers.add(sleeper);
        signal?.addEventListener('abort', stop);
      }),
    callAfter(ms, act) {
      const sleeper = { wakesAtMs: nowMs + ms, wake: act };
      sleepers.add(sleeper);
      return () => void sleepers.delete(sleeper);
    },
    async advance(ms) {
      const untilMs = nowMs + ms;
      await settled(turns);
      for (let next = nextDue(untilMs); next; next = nextDue(untilMs)) {
        nowMs = next.wakesAtMs;
        sleepers.delete(next);
        next.wake();
        await settled(turns);
      }
      nowMs = untilMs;
    },
  };
}

/** Lets everything run that waits for nothing but promises. */
async function settled(turns: number): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}

function abortError(): Error {
  return new DOMException('The operation was aborted', 'AbortError');
}
