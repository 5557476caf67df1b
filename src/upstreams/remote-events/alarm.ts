import type { StopRequest } from '../stop-request.ts';

/** A sleep that can be ended. A ring while nothing sleeps ends the next sleep at once. */
export class Alarm {
  readonly #stop: StopRequest<'unread'>;
  #hasRung = false;
  #wake: (() => void) | undefined;

  /** Rings when `stop` is requested; it is to live as long as that. */
  constructor(stop: StopRequest<'unread'>) {
    this.#stop = stop;
    stop.onRequest(() => this.ring());
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
      if (this.#hasRung || this.#stop.reason !== undefined) this.#wake();
    });
  }
}
