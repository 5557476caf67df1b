import { LRUCache } from 'lru-cache';
import type { Caller } from '../protocol/job-api.ts';
import { bytesAtMost } from '../lib/lru-size.ts';

export type Keyring = ReturnType<typeof createKeyring>;

/** 10,000 users with keys of 1,500 characters. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The keys of users as they sent them last: in memory only, lost with the process. */
export function createKeyring() {
  const keys = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));
  const listeners: ((caller: Caller) => void)[] = [];
  return {
    remember: (caller: Caller): void => {
      if (caller.credential !== undefined) keys.set(caller.user, caller.credential);
      for (const listener of listeners) listener(caller);
    },
    /** Returns the user with the key of the last call, if there was one. */
    callerOf: (user: string): Caller => {
      const credential = keys.get(user);
      return credential === undefined ? { user } : { user, credential };
    },
    /** Calls the listener for every authenticated caller. */
    onCaller: (listener: (caller: Caller) => void): void => void listeners.push(listener),
  };
}
