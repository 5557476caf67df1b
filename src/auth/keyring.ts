import { LRUCache } from 'lru-cache';
import type { Caller } from '../protocol/job-api.ts';
import { bytesAtMost } from '../lib/lru-size.ts';

/** 10,000 users with keys of 1,500 characters. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The keys of users as they sent them last: in memory only, lost with the process. */
export class Keyring {
  readonly #keys = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));
  readonly #listeners: ((caller: Caller) => void)[] = [];

  remember(caller: Caller): void {
    if (caller.credential !== undefined) this.#keys.set(caller.user, caller.credential);
    for (const listener of this.#listeners) listener(caller);
  }

  /** Returns the user with the key of the last call, if there was one. */
  readonly callerOf = (user: string): Caller => {
    const credential = this.#keys.get(user);
    return credential === undefined ? { user } : { user, credential };
  };

  /** Calls the listener for every authenticated caller. */
  onCaller(listener: (caller: Caller) => void): void {
    this.#listeners.push(listener);
  }
}
