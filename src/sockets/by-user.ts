/** Sets of items, one for each user that has any. */
export class ByUser<T> {
  readonly #sets = new Map<string, Set<T>>();

  of(user: string): ReadonlySet<T> {
    return this.#sets.get(user) ?? new Set();
  }

  has(user: string): boolean {
    return this.#sets.has(user);
  }

  add(user: string, item: T): void {
    const items = this.#sets.get(user);
    if (items) items.add(item);
    else this.#sets.set(user, new Set([item]));
  }

  delete(user: string, item: T): void {
    const items = this.#sets.get(user);
    items?.delete(item);
    if (items?.size === 0) this.#sets.delete(user);
  }

  users(): Iterable<string> {
    return this.#sets.keys();
  }

  *all(): Generator<T, void> {
    for (const items of this.#sets.values()) yield* items;
  }
}
