import type { ReceivedUpTo, ReceiverGroup, SubscribedSince } from '../sockets/delivery.ts';
import type { ProgressInput } from '../translate/progress/progress-state.ts';

/**
 * An entry in the event log of a live prompt. Every process that applies the same entries sends the
 * same frames in the same order. Entries are stored, so names and kinds never change.
 */
export type PromptLogEntry =
  /** The prompt is in the outbox. */
  | { readonly kind: 'waits' }
  /** A search for the job of the prompt is running. */
  | { readonly kind: 'sought' }
  /** The prompt is linked: the ledger has its job. */
  | { readonly kind: 'attached' }
  /** The client of the prompt has been answered: frames may be sent. */
  | { readonly kind: 'released' }
  /** Another process has taken the prompt over. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'input'; readonly input: ProgressInput }
  /** The history of the prompt is written: v1's last frame may be sent. */
  | { readonly kind: 'recorded' }
  /** The prompt is removed; no client knew it. */
  | { readonly kind: 'removed' };

/**
 * The bytes that remain of a preview that was lost between processes: enough to tell its format,
 * and fewer than any picture has.
 */
export const PREVIEW_HEAD_BYTES = 4;

/** A process that subscribes to the log of one prompt. */
export type LogSubscriber = {
  /** Applies the next entry. `position` counts from 1, or is 0 where positions do not matter. */
  apply(entry: PromptLogEntry, position: number): Promise<void>;
  /** Called when another process leads the prompt from now on. */
  onLeadershipLost(): void;
  /**
   * Called after the subscription. Frames up to `upTo` have reached sockets of other processes.
   * With `its start`, sockets here got no frames.
   */
  onSubscribed(upTo: ReceivedUpTo, since: SubscribedSince): void;
  /**
   * Called while this process is subscribed, when frames up to `upTo` have reached sockets of
   * another process: they need not be kept any longer.
   */
  onReceivedElsewhere(group: ReceiverGroup, upTo: number): void;
};

/** The event logs of a user's prompts that are stored. */
export type UserLogs = {
  readonly endedKeys: readonly string[];
  /**
   * Returns the keys that have entries. A prompt gets its first entry when its client may know it.
   */
  withEntries(this: void, keys: readonly string[]): Promise<readonly string[]>;
};

/** A prompt and its user. */
export type PromptOfUser = { readonly key: string; readonly user: string };

/** The functions that the event log calls. */
export type LogHandlers = {
  /** Takes over these prompts, oldest first, where that is possible: they have no leader. */
  takeOverVacant(keys: readonly string[]): Promise<void>;
  /** Subscribes to a prompt that this process does not know, if it exists. */
  discover(key: string): Promise<void>;
  /**
   * Subscribes to the prompts of a user: the live ones whose logs `withEntries` finds, and the
   * ended ones whose frames a late socket may still need.
   */
  trackUser(user: string, logs: UserLogs): Promise<void>;
  /** Returns the live prompts of a user, oldest first. */
  liveKeys(user: string): Promise<readonly string[]>;
  /** Hides the user's prompts until they are read again: no entries of them come any more. */
  forgetUser(user: string): void;
  /** Returns how a prompt without entries ended; `none`: it is live. */
  endOf(key: string): Promise<'recorded' | 'removed' | 'none'>;
  /** Called when a client has asked another process to cancel the prompt. */
  cancelRequested(key: string): void;
  /** Called when a client has fetched the result of a prompt from another process. */
  resultFetched(user: string, promptId: string): void;
};

/**
 * The event logs of all live prompts, and which process leads which prompt. A prompt has one leader
 * at a time, and only the leader may append.
 */
export interface PromptEventLog {
  /** Makes this process the leader of a new prompt, before the ledger has it. */
  claim(prompt: PromptOfUser): Promise<void>;
  /**
   * Makes this process the leader of a prompt without a leader, after all its entries were applied.
   * `false`: another process, or another call of this one, was faster.
   */
  takeOver(prompt: PromptOfUser): Promise<boolean>;
  /**
   * Gives up a prompt that this process cannot continue. Any process takes it over when the lease
   * ends.
   */
  stopLeading(key: string): void;
  /** Removes the log of a prompt that needs no leader any more and never ended. */
  discard(key: string): Promise<void>;
  subscribe(prompt: PromptOfUser, subscriber: LogSubscriber): void;
  /** True when the last entry of the prompt was applied here a moment ago. */
  hasAppliedEnd(key: string): boolean;
  /** Resolves when the entry was applied here. Rejects with `LeadershipLost`. */
  append(key: string, entry: PromptLogEntry): Promise<void>;
  isLeader(key: string): boolean;
  /** Records that sockets of this group have received all frames up to this position. */
  markReceived(key: string, group: ReceiverGroup, position: number): void;
  /**
   * Records that a client of this user has the result of a prompt: other processes drop its frames,
   * too.
   */
  resultFetched(user: string, promptId: string): void;
  /** Tells the other processes that the end of the prompt was requested. Does not reject. */
  requestCancel(prompt: PromptOfUser): Promise<void>;
  /** True when other processes may have sockets of this user. */
  isWatched(user: string): boolean;
  /** Records that this process has sockets of the user, or has none any more. */
  watch(user: string, isThere: boolean): void;
  /** True when this process shows all prompts of the user. */
  isFollowed(user: string): boolean;
  /** Subscribes to all prompts of the user. Rejects when they cannot be read. */
  followUser(user: string): Promise<void>;
  /**
   * Resolves when all entries that any process appended before to prompts of this user are applied
   * here. Rejects when the prompts of the user cannot be read.
   */
  whenCaughtUp(user: string): Promise<void>;
  /** Starts the log. `live`: the prompts of an earlier process. */
  start(handlers: LogHandlers, live: readonly PromptOfUser[]): Promise<void>;
  /** Gives up all leadership: other processes take over within a second. */
  close(): Promise<void>;
}

/** Thrown when another process leads the prompt: this one must not append to its log. */
export class LeadershipLost extends Error {
  constructor() {
    super('another process leads this prompt');
  }
}

/**
 * Returns a handler for a rejection: it returns `instead` when leadership is lost, and rethrows any
 * other error.
 */
export function ifLeadershipLost<Instead>(instead: Instead): (error: unknown) => Instead {
  return (error) => {
    if (error instanceof LeadershipLost) return instead;
    throw error;
  };
}

/**
 * The event log of a server that has the ledger alone: every entry is applied at once, and this
 * process leads all prompts.
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
      await subscriber?.apply(entry, 0);
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
