import type { StopRequest } from '../stop-request.ts';

/**
 * A sleep that can be ended early. A call of `ring` while nothing sleeps ends the next sleep at
 * once.
 */
export class Alarm {
  readonly #stop: StopRequest<'unread'>;
  #hasRung = false;
  #wake: (() => void) | undefined;

  /** Ends the sleep when `stop` is requested. The object must not outlive `stop`. */
  constructor(stop: StopRequest<'unread'>) {
    this.#stop = stop;
    stop.onRequest(() => this.ring());
  }

  ring(): void {
    this.#hasRung = true;
    this.#wake?.();
  }

  /** Sleeps with one plain timer, since thousands of jobs sleep at a time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#hasRung = false;
        resolve();
      };
      if (this.#hasRung || this.#stop.reason !== undefined) this.#wake();
    });
  }
}
