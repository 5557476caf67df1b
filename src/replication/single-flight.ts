/** Calls during a run share that run; errors go to `onError`. */
export function singleFlight(
  act: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () =>
    (running ??= act()
      .catch(onError)
      .finally(() => (running = undefined)));
}
