/** Runs tasks of the same key one after the other. */
export type KeyedMutex = <T>(key: string, task: () => Promise<T>) => Promise<T>;

/** A key is forgotten as soon as no task holds or awaits it. */
export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>();
  return async (key, task) => {
    const run = (tails.get(key) ?? Promise.resolve()).then(task);
    const tail = run.then(noop, noop);
    tails.set(key, tail);
    try {
      return await run;
    } finally {
      if (tails.get(key) === tail) tails.delete(key);
    }
  };
}

function noop(): void {}
