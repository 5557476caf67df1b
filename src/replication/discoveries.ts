/**
 * Tracks the prompts that this process reads because it does not know them yet. `discover` reads one; it must not
 * reject.
 */
export function createDiscoveries(discover: (key: string) => Promise<void>) {
  const running = new Map<string, Promise<void>>();
  /** Keys of those whose first entry was received. */
  const fromStart = new Set<string>();
  return {
    /** Reads a prompt unless it is being read; `n` is the number of a received entry. Resolves when it is known. */
    run(key: string, n?: number): Promise<void> {
      if (n === 1) fromStart.add(key);
      const clear = (): void => void (running.delete(key), fromStart.delete(key));
      const task = running.get(key) ?? discover(key).finally(clear);
      running.set(key, task);
      return task;
    },
    /** True while this prompt is read, if its first entry was received. */
    hasFirstEntry: (key: string): boolean => fromStart.has(key),
    whenDone: async (): Promise<void> => void (await Promise.all(running.values())),
  };
}
