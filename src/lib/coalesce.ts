/** Runs of a task that never overlap: a call during a run causes one more run after it. */
export function coalesce(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let isRequested = false;
  const run = async (): Promise<void> => {
    do {
      isRequested = false;
      await task();
    } while (isRequested);
  };
  return () => {
    isRequested = true;
    return (running ??= run().finally(() => (running = undefined)));
  };
}
