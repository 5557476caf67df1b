/** Tracks the prompts that this process reads because it does not know them yet. */
export class Discoveries {
  readonly #discover: (key: string) => Promise<void>;
  readonly #running = new Map<string, Promise<void>>();
  /** Keys of those whose first entry was received. */
  readonly #fromStart = new Set<string>();

  /** `discover` reads one prompt; it must not reject. */
  constructor(discover: (key: string) => Promise<void>) {
    this.#discover = discover;
  }

  /** Reads a prompt unless it is being read; `n` is the number of a received entry. Resolves when it is known. */
  run(key: string, n?: number): Promise<void> {
    if (n === 1) this.#fromStart.add(key);
    const task = this.#running.get(key) ?? this.#discover(key).finally(() => this.#clear(key));
    this.#running.set(key, task);
    return task;
  }

  /** True while this prompt is read, if its first entry was received. */
  hasFirstEntry(key: string): boolean {
    return this.#fromStart.has(key);
  }

  async whenDone(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  #clear(key: string): void {
    this.#running.delete(key);
    this.#fromStart.delete(key);
  }
}
