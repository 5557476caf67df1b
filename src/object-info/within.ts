import { setTimeout as delay } from 'node:timers/promises';

/** Waits for something that goes on anyway, but only so long. */
export async function within(work: Promise<void>, ms: number): Promise<void> {
  const done = new AbortController();
  const timer = delay(ms, undefined, { signal: done.signal, ref: false }).catch(() => {});
  await Promise.race([work, timer]);
  done.abort();
}
