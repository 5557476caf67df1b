/**
 * A sleep that can be ended early. A call of `interrupt` while nothing sleeps ends the next sleep
 * at once.
 */
export class InterruptibleSleep {
  #isInterrupted = false;
  #wake: (() => void) | undefined;

  interrupt(): void {
    this.#isInterrupted = true;
    this.#wake?.();
  }

  /** Sleeps with one plain timer, since thousands of jobs sleep at a time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#isInterrupted = false;
        resolve();
      };
      if (this.#isInterrupted) this.#wake();
    });
  }
}
