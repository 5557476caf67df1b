import { LRUCache } from 'lru-cache';
import type { Caller } from '../protocol/job-api.ts';
import { bytesAtMost } from '../lib/lru-size.ts';

export interface Keyring {
  readonly remember: (caller: Caller) => void;
  /** Returns the user with the key of the last call, if there was one. */
  readonly callerOf: (user: string) => Caller;
  /** Calls the listener for every authenticated caller. */
  readonly onCaller: (listener: (caller: Caller) => void) => void;
}

/** 10,000 users with keys of 1,500 characters. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The keys of users as they sent them last: in memory only, lost with the process. */
export function createKeyring(): Keyring {
  const keys = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));
  const listeners: ((caller: Caller) => void)[] = [];
  return {
    remember: (caller) => {
      if (caller.credential !== undefined) keys.set(caller.user, caller.credential);
      for (const listener of listeners) listener(caller);
    },
    callerOf: (user) => {
      const credential = keys.get(user);
      return credential === undefined ? { user } : { user, credential };
    },
    onCaller: (listener) => void listeners.push(listener),
  };
}
