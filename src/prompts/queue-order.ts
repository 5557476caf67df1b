type Created = { readonly createdAtMs: number; readonly key: string };

/** Oldest first. All processes must order two prompts in the same way, whichever they saw first. */
export function byCreation(a: Created, b: Created): number {
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  if (a.key === b.key) return 0;
  return a.key < b.key ? -1 : 1;
}

/** In the order they run: lower number first, equal numbers by age. */
export function byQueueOrder(
  a: Created & { number: number },
  b: Created & { number: number },
): number {
  return a.number === b.number ? byCreation(a, b) : a.number - b.number;
}
