/** Prompts that this process does not know yet, while it reads them. `discover` must not reject. */
export function createDiscoveries(discover: (key: string) => Promise<void>) {
  const running = new Map<string, Promise<void>>();
  /** Those whose first entry was received. */
  const fromStart = new Set<string>();
  return {
    /** Reads a prompt of which entry `n` was received; resolves when it is known. */
    run(key: string, n?: number): Promise<void> {
      if (n === 1) fromStart.add(key);
      const forget = (): void => void (running.delete(key), fromStart.delete(key));
      const task = running.get(key) ?? discover(key).finally(forget);
      running.set(key, task);
      return task;
    },
    /** True while a prompt is read whose first entry was received. */
    hasFirstEntry: (key: string): boolean => fromStart.has(key),
    whenDone: async (): Promise<void> => void (await Promise.all(running.values())),
  };
}
