/** A stream begins with the status and the progress of its job. */
const STATE_EVENTS = 2;

type SilenceOptions = {
  readonly opening: number;
  readonly first: number;
  readonly last: number;
  /** Calls `begin` when the job may be read, unless the returned function is called before. */
  readonly requestTurn: (begin: () => void) => () => void;
  /** Varies a wait: streams that were opened together must not ask together. */
  readonly jitter: (ms: number) => number;
};

/**
 * Watches one open stream. Calls `onSilence` when it was silent for `first` ms, then after twice the
 * time, up to every `last` ms. After the job's state, with which a stream begins, it starts with
 * `opening` ms: one server connects to the engine only after it has read that state, and events in
 * between are on no stream.
 */
export class SilenceWatch {
  readonly #options: SilenceOptions;
  readonly #onSilence: () => void;
  #waitMs: number;
  #timer: NodeJS.Timeout | undefined;
  #cancelTurn = (): void => {};
  #events = 0;
  #isClosed = false;

  constructor(options: SilenceOptions, onSilence: () => void) {
    this.#options = options;
    this.#onSilence = onSilence;
    this.#waitMs = options.first;
    this.checkAgainIn(options.first);
  }

  /** Restarts the time of silence: the stream has sent something. */
  noteActivity(): void {
    const { opening, first } = this.#options;
    this.#waitMs = this.#events++ < STATE_EVENTS ? opening : first;
    this.checkAgainIn(this.#waitMs);
  }

  /** Calls `onSilence` after this time, not at the time that was set before. */
  checkAgainIn(ms: number): void {
    if (this.#isClosed) return;
    this.#cancelCheck();
    this.#timer = setTimeout(() => this.#scheduleCheck(), this.#options.jitter(ms));
  }

  /** Ends the watch: later calls do nothing. */
  close(): void {
    this.#isClosed = true;
    this.#cancelCheck();
  }

  #cancelCheck(): void {
    clearTimeout(this.#timer);
    this.#cancelTurn();
  }

  #scheduleCheck(): void {
    this.#cancelTurn = this.#options.requestTurn(() => this.#checkNow());
  }

  #checkNow(): void {
    this.#waitMs = Math.min(this.#options.last, this.#waitMs * 2);
    this.checkAgainIn(this.#waitMs);
    this.#onSilence();
  }
}
