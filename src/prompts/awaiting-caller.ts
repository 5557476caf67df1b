/** Prompts without a leader that wait for a call of their user. */
export class AwaitingCaller {
  readonly #userOf = new Map<string, string>();
  readonly #keysOf = new Map<string, Set<string>>();

  /** The number of users. */
  get users(): number {
    return this.#keysOf.size;
  }

  add(key: string, user: string): void {
    this.#userOf.set(key, user);
    this.#keysOf.set(user, (this.#keysOf.get(user) ?? new Set()).add(key));
  }

  has(key: string): boolean {
    return this.#userOf.has(key);
  }

  /** Removes and returns the prompts of this user. */
  takeOf(user: string): readonly string[] {
    const keys = [...(this.#keysOf.get(user) ?? [])];
    for (const key of keys) this.#delete(key, user);
    return keys;
  }

  /** Forgets those that are not among these keys. */
  retain(keys: ReadonlySet<string>): void {
    for (const [key, user] of this.#userOf) if (!keys.has(key)) this.#delete(key, user);
  }

  #delete(key: string, user: string): void {
    this.#userOf.delete(key);
    const keys = this.#keysOf.get(user);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysOf.delete(user);
  }
}
