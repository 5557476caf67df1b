import type { ProgressInput } from '../translate/progress-state.ts';

/**
 * What happens to a live prompt, one thing after the other. Every process that hears the same
 * entries says the same frames in the same order.
 */
export type PromptLogEntry =
  /** It is in the outbox. */
  | { readonly kind: 'waits' }
  /** Whether it has a job is being found out. */
  | { readonly kind: 'sought' }
  /** Its job is in the ledger. */
  | { readonly kind: 'attached' }
  /** Its client has been answered: frames may go. */
  | { readonly kind: 'released' }
  /** Whoever looked after it is gone, another process does now. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'input'; readonly input: ProgressInput }
  /** Its history is written: v1's last word may be said. */
  | { readonly kind: 'recorded' }
  /** Nothing is left of it, and nobody was told of it. */
  | { readonly kind: 'removed' };

/**
 * Of a preview that got lost on the way between processes so many bytes are left: enough to know
 * its format, fewer than any picture has.
 */
export const PREVIEW_HEAD_BYTES = 4;

/**
 * Sockets that are sent a whole prompt: those of its client id, and the other hosted ones of its
 * user. What one of the former has received is received; what one of the latter has is heard, and
 * still waits for the former.
 */
export type ReceiverGroup = 'client' | 'hosted';

/** By audience, the place in the prompt's journal up to which it has everything. */
export type ReceivedUpTo = { readonly [group in ReceiverGroup]: number };

/** When a process heard of a prompt: with its first entry, or when more had been said of it. */
export type SubscribedSince = 'its start' | 'later';

/** One process's ear on one prompt. */
export type LogSubscriber = {
  /** The next entry; `at` is its place, from 1 on, or 0 where places do not matter. */
  apply(entry: PromptLogEntry, position: number): Promise<void>;
  /** Another process looks after the prompt from now on. */
  onLeadershipLost(): void;
  /**
   * What was said up to here has reached sockets elsewhere. Since `its start`: those here have heard
   * none of it.
   */
  onSubscribed(upTo: ReceivedUpTo, since: SubscribedSince): void;
  /** The same, while this process was listening: it need not be kept any longer. */
  onReceivedElsewhere(group: ReceiverGroup, upTo: number): void;
};

/** What a journal asks of the house it is in. */
export type LogHandlers = {
  /** Nobody looks after these, oldest first; they are to be taken over where that is possible. */
  takeOverVacant(keys: readonly string[]): Promise<void>;
  /** There is a prompt nobody here knows of: it joins, if it is one. */
  discover(key: string): Promise<void>;
  /** How a prompt ended of which no entry is left; `none`: it is live all the same. */
  endOf(key: string): Promise<'recorded' | 'removed' | 'none'>;
  /** A client asked another process for the end of it. */
  cancelRequested(key: string): void;
  /** A client fetched the result of a prompt from another process. */
  resultFetched(user: string, promptId: string): void;
};

/**
 * The entries of all live prompts, and who looks after which: one process at a time for each, and
 * only that one may append.
 */
export interface PromptEventLog {
  /** This process looks after a new prompt; before the ledger knows it. */
  claim(key: string): Promise<void>;
  /** The same for one nobody looks after; `false`: another one was faster. All entries were heard. */
  takeOver(key: string): Promise<boolean>;
  /** Nobody needs to look after it any more, and it never ended. */
  discard(key: string): Promise<void>;
  subscribe(
    prompt: { readonly key: string; readonly user: string },
    subscriber: LogSubscriber,
  ): void;
  /** Resolves when the entry was heard here; rejects with `LeadLost`. */
  append(key: string, entry: PromptLogEntry): Promise<void>;
  isLeader(key: string): boolean;
  /** All that was said of it up to this entry has reached a socket of this audience. */
  markReceived(key: string, group: ReceiverGroup, position: number): void;
  /** A client of this user has the result of a prompt: other processes keep nothing of it either. */
  resultFetched(user: string, promptId: string): void;
  /** Whoever looks after it shall hear that its end is wanted. */
  requestCancel(key: string): void;
  /** Whether sockets of this user may be at other processes. */
  isWatched(user: string): boolean;
  /** This process has sockets of the user, or none any more. */
  watch(user: string, isThere: boolean): void;
  /** Resolves when all is heard that was appended anywhere before to prompts of this user. */
  whenCaughtUp(user: string): Promise<void>;
  /** `live`: prompts an earlier process left. */
  start(handlers: LogHandlers, live: readonly string[]): Promise<void>;
  /** Others may take over at once. */
  close(): Promise<void>;
}

/** Another process looks after the prompt: nothing more is to be said of it here. */
export class LeadershipLost extends Error {
  constructor() {
    super('another process looks after this prompt');
  }
}

/** For a rejection: whatever else went wrong is thrown on. */
export function ifLeadershipLost<Instead>(instead: Instead): (error: unknown) => Instead {
  return (error) => {
    if (error instanceof LeadershipLost) return instead;
    throw error;
  };
}

/** For a process that is alone: every entry is heard at once, and nobody else can lead. */
export function createLocalEventLog(): PromptEventLog {
  const subscribers = new Map<string, LogSubscriber>();
  return {
    async claim() {},
    takeOver: async () => true,
    async discard(key) {
      subscribers.delete(key);
    },
    subscribe: ({ key }, subscriber) => void subscribers.set(key, subscriber),
    async append(key, entry) {
      const subscriber = subscribers.get(key);
      if (entry.kind === 'recorded' || entry.kind === 'removed') subscribers.delete(key);
      await subscriber?.apply(entry, 0);
    },
    isLeader: () => true,
    markReceived() {},
    resultFetched() {},
    requestCancel() {},
    isWatched: () => false,
    watch() {},
    async whenCaughtUp() {},
    start: (handlers, live) => handlers.takeOverVacant(live),
    async close() {},
  };
}
