const NO_ITEMS: ReadonlySet<never> = new Set<never>();

/** A set of items for each user that has any. */
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

  /** Removes and returns the items of a user. */
  take(user: string): ReadonlySet<T> {
    const items = this.of(user);
    this.#size -= items.size;
    this.#sets.delete(user);
    return items;
  }

  /** Deletes the items that are not among these. */
  retain(items: ReadonlySet<T>): void {
    for (const user of this.users())
      for (const item of this.of(user)) if (!items.has(item)) this.delete(user, item);
  }

  users(): Iterable<string> {
    return this.#sets.keys();
  }

  *all(): Generator<T, void> {
    for (const items of this.#sets.values()) yield* items;
  }
}
