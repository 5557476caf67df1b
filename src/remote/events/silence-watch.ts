/** A stream begins with the status and the progress of its job. */
const STATE_EVENTS = 2;

/** Watches one open stream. */
export interface SilenceWatch {
  /** Restarts the time of silence: the stream has sent something. */
  noteActivity(): void;
  /** Calls `onSilence` after this time: the read before has failed. */
  checkAgainIn(ms: number): void;
  readonly close: () => void;
}

/**
 * Calls `onSilence` when a stream was silent for `first` ms, then after twice the time, up to every
 * `last` ms. After the job's state, with which a stream begins, it starts with `opening` ms: one
 * server connects to the engine only after it has read that state, and events in between are on no
 * stream.
 */
export function watchSilence(
  options: {
    readonly opening: number;
    readonly first: number;
    readonly last: number;
    /** Calls `begin` when the job may be read, unless the returned function is called before. */
    readonly requestTurn: (begin: () => void) => () => void;
    /** Varies a wait: streams that were opened together must not ask together. */
    readonly jitter: (ms: number) => number;
  },
  onSilence: () => void,
): SilenceWatch {
  const { opening, first, last, requestTurn, jitter } = options;
  let waitMs = first;
  let timer = setTimeout(scheduleCheck, jitter(waitMs));
  let cancelTurn = (): void => {};
  let events = 0;

  function scheduleCheck(): void {
    cancelTurn = requestTurn(checkNow);
  }

  function checkNow(): void {
    waitMs = Math.min(last, waitMs * 2);
    restart(waitMs);
    onSilence();
  }

  function restart(ms: number): void {
    close();
    timer = setTimeout(scheduleCheck, jitter(ms));
  }

  function close(): void {
    clearTimeout(timer);
    cancelTurn();
  }

  return {
    noteActivity() {
      waitMs = events++ < STATE_EVENTS ? opening : first;
      restart(waitMs);
    },
    checkAgainIn: restart,
    close,
  };
}
