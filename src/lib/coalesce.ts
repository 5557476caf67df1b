/** Runs of a task that never overlap: calls during a run share the next one, which begins after it. */
export function coalesce(task: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  let next: Promise<void> | undefined;
  return () =>
    (next ??= last
      .catch(() => {})
      .then(() => {
        next = undefined;
        return (last = task());
      }));
}
