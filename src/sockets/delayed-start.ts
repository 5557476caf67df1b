/** The two steps of a new socket: `first` sends its first frame, `rest` sends the others that are due. */
export type FirstSteps = { readonly first: () => void; readonly rest: () => void };

/**
 * Delays the frames of a new socket until its 101 response has been read: some clients drop bytes
 * that arrive together with the 101. The first frame is sent alone, the rest in another turn of the
 * event loop.
 */
export class DelayedStart {
  readonly #steps: FirstSteps;
  readonly #timer: NodeJS.Timeout;
  #rest: NodeJS.Immediate | undefined;

  constructor(delayMs: number, steps: FirstSteps) {
    this.#steps = steps;
    this.#timer = setTimeout(() => {
      steps.first();
      this.#rest = setImmediate(steps.rest);
    }, delayMs).unref();
  }

  /** Takes the steps that are left. */
  endNow(): void {
    this.cancel();
    if (!this.#rest) this.#steps.first();
    this.#steps.rest();
  }

  cancel(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#rest);
  }
}
