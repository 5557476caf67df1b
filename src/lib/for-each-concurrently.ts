/** Acts on all items, so many at a time. The first failure stops the rest; begun ones end first. */
export async function forEachConcurrently<T>(
  maxConcurrent: number,
  items: Iterable<T>,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = items[Symbol.iterator]();
  let isStopped = false;
  const worker = async (): Promise<void> => {
    while (!isStopped) {
      const next = remaining.next();
      if (next.done === true) return;
      await act(next.value);
    }
  };
  const stop = (): void => void (isStopped = true);
  const running = Array.from({ length: maxConcurrent }, () => worker().finally(stop));
  for (const end of await Promise.allSettled(running)) {
    if (end.status === 'rejected') throw end.reason;
  }
}
