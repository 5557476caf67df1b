/** A sleep that can be ended. A ring while nothing sleeps ends the next sleep at once. */
export class Alarm {
  readonly #signal: AbortSignal;
  #hasRung = false;
  #wake: (() => void) | undefined;

  /** Rings when `signal` aborts. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this, { once: true });
  }

  /** The signal aborts. */
  handleEvent(): void {
    this.ring();
  }

  ring(): void {
    this.#hasRung = true;
    this.#wake?.();
  }

  /** Uses one plain timer: thousands of jobs sleep at a time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#hasRung = false;
        resolve();
      };
      if (this.#hasRung || this.#signal.aborted) this.#wake();
    });
  }

  close(): void {
    this.#signal.removeEventListener('abort', this);
  }
}
