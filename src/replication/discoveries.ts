/** Prompts that this process does not know yet, while it reads them. */
export class Discoveries {
  readonly #discover: (key: string) => Promise<void>;
  readonly #running = new Map<string, Promise<void>>();
  /** Those whose first entry was received. */
  readonly #fromStart = new Set<string>();

  /** `discover` must not reject. */
  constructor(discover: (key: string) => Promise<void>) {
    this.#discover = discover;
  }

  /** Reads a prompt of which entry `n` was received; resolves when it is known. */
  run(key: string, n?: number): Promise<void> {
    if (n === 1) this.#fromStart.add(key);
    const task =
      this.#running.get(key) ??
      this.#discover(key).finally(() => {
        this.#running.delete(key);
        this.#fromStart.delete(key);
      });
    this.#running.set(key, task);
    return task;
  }

  /** True while a prompt is read whose first entry was received. */
  hasFirstEntry(key: string): boolean {
    return this.#fromStart.has(key);
  }

  async whenDone(): Promise<void> {
    await Promise.all(this.#running.values());
  }
}
