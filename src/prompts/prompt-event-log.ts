import type { ReceivedUpTo, ReceiverGroup, SubscribedSince } from '../sockets/delivery.ts';
import type { ProgressInput } from '../translate/progress-state.ts';

/**
 * An entry of a live prompt's event log. Every process that applies the same entries sends the same
 * frames in the same order. Entries are stored: names and kinds never change.
 */
export type PromptLogEntry =
  /** The prompt is in the outbox. */
  | { readonly kind: 'waits' }
  /** A search for its job is running. */
  | { readonly kind: 'sought' }
  /** It is linked: the ledger has its job. */
  | { readonly kind: 'attached' }
  /** Its client has been answered: frames may be sent. */
  | { readonly kind: 'released' }
  /** Another process has taken the prompt over. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'input'; readonly input: ProgressInput }
  /** Its history is written: v1's last frame may be sent. */
  | { readonly kind: 'recorded' }
  /** It is removed; no client knew it. */
  | { readonly kind: 'removed' };

/**
 * Bytes that remain of a preview lost between processes: enough to know its format, fewer than any
 * picture has.
 */
export const PREVIEW_HEAD_BYTES = 4;

/** A process that subscribes to the log of one prompt. */
export type LogSubscriber = {
  /**
   * The next entry. `position` counts from 1, or is 0 where positions do not matter. `undefined`: it is
   * applied.
   */
  apply(entry: PromptLogEntry, position: number): Promise<void> | undefined;
  /** Another process leads the prompt from now on. */
  onLeadershipLost(): void;
  /**
   * Frames up to here have reached sockets of other processes. With `its start`, sockets here got
   * none.
   */
  onSubscribed(upTo: ReceivedUpTo, since: SubscribedSince): void;
  /** The same while this process is subscribed: the frames need not be kept any longer. */
  onReceivedElsewhere(group: ReceiverGroup, upTo: number): void;
};

/** The logs of a user's prompts, as far as they are stored. */
export type UserLogs = {
  readonly endedKeys: readonly string[];
  /** Those of the keys that have entries: a prompt gets its first one when its client may know it. */
  withEntries(this: void, keys: readonly string[]): Promise<readonly string[]>;
};

/** A prompt and its user. */
export type PromptOfUser = { readonly key: string; readonly user: string };

/** The functions that the event log calls. */
export type LogHandlers = {
  /** These prompts have no leader, oldest first: take them over where that is possible. */
  takeOverVacant(keys: readonly string[]): Promise<void>;
  /** This process does not know the prompt: subscribe to it, if it exists. */
  discover(key: string): Promise<void>;
  /**
   * Subscribes to the prompts of a user: to the live ones whose log `withEntries` finds, and to
   * ended ones that a late socket may still have to receive.
   */
  trackUser(user: string, logs: UserLogs): Promise<void>;
  /** The live prompts of a user, oldest first. */
  liveKeys(user: string): Promise<readonly string[]>;
  /** No entries of this user's prompts come any more: they are not shown here until they are read again. */
  forgetUser(user: string): void;
  /** How a prompt ended that has no entries left; `none`: it is live. */
  endOf(key: string): Promise<'recorded' | 'removed' | 'none'>;
  /** A client asked another process to cancel it. */
  cancelRequested(key: string): void;
  /** A client fetched the result of a prompt from another process. */
  resultFetched(user: string, promptId: string): void;
};

/**
 * The event logs of all live prompts, and which process leads which: one leader at a time, and only
 * the leader may append.
 */
export interface PromptEventLog {
  /** Makes this process the leader of a new prompt, before the ledger has it. */
  claim(prompt: PromptOfUser): Promise<void>;
  /**
   * The same for a prompt without a leader, after all its entries were applied. `false`: another
   * process was faster, or another call of this one.
   */
  takeOver(prompt: PromptOfUser): Promise<boolean>;
  /** This process cannot go on with the prompt: when its lease is over, any process takes it over. */
  stopLeading(key: string): void;
  /** The prompt needs no leader any more, and it never ended. */
  discard(key: string): Promise<void>;
  subscribe(prompt: PromptOfUser, subscriber: LogSubscriber): void;
  /** True when the last entry of the prompt was applied here a moment ago. */
  hasAppliedEnd(key: string): boolean;
  /** Resolves when the entry was applied here. Rejects with `LeadershipLost`. */
  append(key: string, entry: PromptLogEntry): Promise<void>;
  isLeader(key: string): boolean;
  /** Sockets of this group have received all frames up to this position. */
  markReceived(key: string, group: ReceiverGroup, position: number): void;
  /**
   * A client of this user has the result of a prompt: other processes keep no frames of it either.
   */
  resultFetched(user: string, promptId: string): void;
  /** Tells the other processes that the end of the prompt was requested. Does not reject. */
  requestCancel(prompt: PromptOfUser): Promise<void>;
  /** True when other processes may have sockets of this user. */
  isWatched(user: string): boolean;
  /** This process has sockets of the user, or has none any more. */
  watch(user: string, isThere: boolean): void;
  /** True when this process shows all prompts of the user. */
  isFollowed(user: string): boolean;
  /** Resolves when it does; rejects when they cannot be read. */
  followUser(user: string): Promise<void>;
  /**
   * Resolves when everything that any process appended before to prompts of this user is applied
   * here; rejects when the prompts of the user cannot be read.
   */
  whenCaughtUp(user: string): Promise<void>;
  /** `live`: prompts left by an earlier process. */
  start(handlers: LogHandlers, live: readonly PromptOfUser[]): Promise<void>;
  /** Gives up all leadership: other processes take over within a second. */
  close(): Promise<void>;
}

/** Another process leads the prompt: this one must not append to its log. */
export class LeadershipLost extends Error {
  constructor() {
    super('another process looks after this prompt');
  }
}

/** Handler for a rejection: returns `instead` when leadership is lost, rethrows any other error. */
export function ifLeadershipLost<Instead>(instead: Instead): (error: unknown) => Instead {
  return (error) => {
    if (error instanceof LeadershipLost) return instead;
    throw error;
  };
}

/**
 * Used when one process has the ledger: every entry is applied at once, and this process leads all
 * prompts.
 */
export function createLocalEventLog(): PromptEventLog {
  const subscribers = new Map<string, LogSubscriber>();
  return {
    async claim() {},
    takeOver: async () => true,
    stopLeading() {},
    async discard(key) {
      subscribers.delete(key);
    },
    subscribe: ({ key }, subscriber) => void subscribers.set(key, subscriber),
    hasAppliedEnd: () => false,
    async append(key, entry) {
      const subscriber = subscribers.get(key);
      if (entry.kind === 'recorded' || entry.kind === 'removed') subscribers.delete(key);
      const applied = subscriber?.apply(entry, 0);
      if (applied) await applied;
    },
    isLeader: () => true,
    markReceived() {},
    resultFetched() {},
    async requestCancel() {},
    isWatched: () => false,
    watch() {},
    isFollowed: () => true,
    async followUser() {},
    async whenCaughtUp() {},
    start: (handlers, live) => handlers.takeOverVacant(live.map(({ key }) => key)),
    async close() {},
  };
}
