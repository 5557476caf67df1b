import { LRUCache } from 'lru-cache';
import type { Caller } from '../protocol/job-api.ts';

/** The keys of users as they last presented them: in memory only, gone with the process. */
export type Keyring = {
  readonly remember: (caller: Caller) => void;
  /** The user with the key they came with, if they came at all. */
  readonly callerOf: (user: string) => Caller;
  /** Calls the listener for every authenticated caller. */
  readonly onCaller: (listener: (caller: Caller) => void) => void;
};

const MAX_USERS = 10_000;

export function createKeyring(): Keyring {
  const keys = new LRUCache<string, string>({ max: MAX_USERS });
  const listeners: ((caller: Caller) => void)[] = [];
  return {
    remember(caller) {
      if (caller.credential !== undefined) keys.set(caller.user, caller.credential);
      for (const listener of listeners) listener(caller);
    },
    callerOf(user) {
      const credential = keys.get(user);
      return credential === undefined ? { user } : { user, credential };
    },
    onCaller: (listener) => void listeners.push(listener),
  };
}
