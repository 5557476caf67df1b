type OnError = (error: unknown) => void;

/**
 * Tasks that go on beside the calls, until their owner closes. One that waits costs no chain of
 * promises: there may be thousands.
 */
export class BackgroundTasks {
  readonly #stop = new AbortController();
  readonly #running = new Map<number, Promise<void>>();
  #lastId = 0;

  /** Aborted by `close`. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Starts a task; the promise never rejects. `onError` gets its error, unless it has been stopped. */
  run(task: () => Promise<void>, onError: OnError): Promise<void> {
    const id = ++this.#lastId;
    this.#running.set(id, Promise.resolve());
    const running = this.#runToEnd(id, task, onError);
    if (this.#running.has(id)) this.#running.set(id, running);
    return running;
  }

  /** Resolves when all tasks have ended. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running.values());
  }

  async #runToEnd(id: number, task: () => Promise<void>, onError: OnError): Promise<void> {
    try {
      await task();
    } catch (error) {
      if (!this.signal.aborted) onError(error);
    } finally {
      this.#running.delete(id);
    }
  }
}
