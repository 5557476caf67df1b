/** A sleep that can be ended. A ring while nothing sleeps ends the next sleep at once. */
export class Alarm {
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.ring();
  #hasRung = false;
  #wake = (): void => {};

  /** Rings when `signal` aborts. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  ring(): void {
    this.#hasRung = true;
    this.#wake();
  }

  /** Uses one plain timer: thousands of jobs sleep at a time. */
  async sleep(ms: number): Promise<void> {
    if (!this.#hasRung && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#hasRung = false;
    this.#wake = () => {};
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
  }
}
