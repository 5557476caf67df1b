const NO_ITEMS: ReadonlySet<never> = new Set<never>();

/** Sets of items, one for each user that has any. */
export class ByUser<T> {
  readonly #sets = new Map<string, Set<T>>();
  #size = 0;

  /** The number of items of all users. */
  get size(): number {
    return this.#size;
  }

  of(user: string): ReadonlySet<T> {
    return this.#sets.get(user) ?? NO_ITEMS;
  }

  has(user: string): boolean {
    return this.#sets.has(user);
  }

  add(user: string, item: T): void {
    const items = this.#sets.get(user) ?? new Set();
    if (items.has(item)) return;
    this.#sets.set(user, items.add(item));
    this.#size += 1;
  }

  delete(user: string, item: T): void {
    const items = this.#sets.get(user);
    if (!items?.delete(item)) return;
    this.#size -= 1;
    if (items.size === 0) this.#sets.delete(user);
  }

  users(): Iterable<string> {
    return this.#sets.keys();
  }

  *all(): Generator<T, void> {
    for (const items of this.#sets.values()) yield* items;
  }
}
