import type { Clock } from '../../lib/clock.ts';
/** Limits how often jobs of one upstream are read because their streams are silent. */
export type CheckRate = ReturnType<typeof createCheckRate>;

/**
 * `clock` must be monotonic: after a wall clock is set back, the next slot would be far in the
 * future.
 */
export function createCheckRate(options: {
  readonly perSecond: number;
  /** The number of reads that may follow one another at once after a quiet time. */
  readonly burst: number;
  readonly clock: Clock;
}) {
  const slotMs = 1000 / options.perSecond;
  let nextMs = Number.NEGATIVE_INFINITY;
  return {
    /** Reserves one read. Returns the milliseconds to wait before it. */
    reserve(): number {
      const nowMs = options.clock.now();
      const slotAtMs = Math.max(nextMs, nowMs - (options.burst - 1) * slotMs);
      nextMs = slotAtMs + slotMs;
      return Math.max(0, slotAtMs - nowMs);
    },
  };
}

/** Watches one open stream. */
export type SilenceWatch = ReturnType<typeof watchSilence>;

/**
 * Calls `onSilence` when a stream was silent for `first` ms, then after twice the time, up to every
 * `last` ms. One server connects to the engine only after it has read the job's state: events in
 * between are on no stream.
 */
export function watchSilence(
  options: {
    readonly first: number;
    readonly last: number;
    readonly rate: CheckRate;
    /** Varies a wait: streams that were opened together must not ask together. */
    readonly jitter: (ms: number) => number;
  },
  onSilence: () => void,
) {
  const { first, last, rate, jitter } = options;
  let waitMs = first;
  let timer = setTimeout(scheduleCheck, jitter(waitMs));
  /** True while the first timer runs, which can be restarted unchanged. */
  let isFirst = true;

  function scheduleCheck(): void {
    isFirst = false;
    const delayMs = rate.reserve();
    if (delayMs > 0) timer = setTimeout(checkNow, delayMs);
    else checkNow();
  }

  function checkNow(): void {
    waitMs = Math.min(last, waitMs * 2);
    timer = setTimeout(scheduleCheck, jitter(waitMs));
    onSilence();
  }

  return {
    /** Restarts the time of silence: the stream has sent something. */
    noteActivity(): void {
      if (isFirst) return void timer.refresh();
      clearTimeout(timer);
      waitMs = first;
      isFirst = true;
      timer = setTimeout(scheduleCheck, jitter(waitMs));
    },
    close: (): void => clearTimeout(timer),
  };
}
