/** A promise that is resolved from outside. */
export type Deferred = { readonly promise: Promise<void>; readonly resolve: () => void };

export function createDeferred(): Deferred {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
