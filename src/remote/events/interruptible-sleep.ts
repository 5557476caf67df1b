import type { StopRequest } from '../../job-events/stop-request.ts';

/**
 * A sleep that can be ended early. A call of `interrupt` while nothing sleeps ends the next sleep
 * at once.
 */
export class InterruptibleSleep {
  readonly #stop: StopRequest<'unread'>;
  #isInterrupted = false;
  #wake: (() => void) | undefined;

  /** Ends the sleep when `stop` is requested. The object must not outlive `stop`. */
  constructor(stop: StopRequest<'unread'>) {
    this.#stop = stop;
    stop.onRequest(() => this.interrupt());
  }

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
      if (this.#isInterrupted || this.#stop.reason !== undefined) this.#wake();
    });
  }
}
