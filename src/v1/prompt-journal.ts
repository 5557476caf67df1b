import type { Input } from '../translate/progress-state.ts';

/**
 * What happens to a live prompt, one thing after the other. Every process that hears the same
 * entries says the same frames in the same order.
 */
export type Entry =
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
  | { readonly kind: 'input'; readonly input: Input }
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
export type Audience = 'client' | 'hosted';

/** By audience, the place in the prompt's journal up to which it has everything. */
export type ReceivedUpTo = { readonly [audience in Audience]: number };

/** When a process heard of a prompt: with its first entry, or when more had been said of it. */
export type HeardSince = 'its start' | 'later';

/** One process's ear on one prompt. */
export type Hearer = {
  /** The next entry; `at` is its place, from 1 on, or 0 where places do not matter. */
  apply(entry: Entry, at: number): Promise<void>;
  /** Another process looks after the prompt from now on. */
  lost(): void;
  /**
   * What was said up to here has reached sockets elsewhere. Since `its start`: those here have heard
   * none of it.
   */
  joined(upTo: ReceivedUpTo, since: HeardSince): void;
  /** The same, while this process was listening: it need not be kept any longer. */
  receivedElsewhere(audience: Audience, upTo: number): void;
};

/** What a journal asks of the house it is in. */
export type Crew = {
  /** Nobody looks after these, oldest first; they are to be taken over where that is possible. */
  vacant(keys: readonly string[]): Promise<void>;
  /** There is a prompt nobody here knows of: it joins, if it is one. */
  discover(key: string): Promise<void>;
  /** How a prompt ended of which no entry is left; `none`: it is live all the same. */
  endOf(key: string): Promise<'recorded' | 'removed' | 'none'>;
  /** A client asked another process for the end of it. */
  cancelAsked(key: string): void;
  /** A client fetched the result of a prompt from another process. */
  fetched(user: string, promptId: string): void;
};

/**
 * The entries of all live prompts, and who looks after which: one process at a time for each, and
 * only that one may append.
 */
export interface PromptJournal {
  /** This process looks after a new prompt; before the ledger knows it. */
  claim(key: string): Promise<void>;
  /** The same for one nobody looks after; `false`: another one was faster. All entries were heard. */
  takeOver(key: string): Promise<boolean>;
  /** Nobody needs to look after it any more, and it never ended. */
  drop(key: string): Promise<void>;
  join(prompt: { readonly key: string; readonly user: string }, hearer: Hearer): void;
  /** Resolves when the entry was heard here; rejects with `LeadLost`. */
  append(key: string, entry: Entry): Promise<void>;
  leads(key: string): boolean;
  /** All that was said of it up to this entry has reached a socket of this audience. */
  received(key: string, audience: Audience, at: number): void;
  /** A client of this user has the result of a prompt: other processes keep nothing of it either. */
  fetched(user: string, promptId: string): void;
  /** Whoever looks after it shall hear that its end is wanted. */
  askCancel(key: string): void;
  /** Whether sockets of this user may be at other processes. */
  isWatched(user: string): boolean;
  /** This process has sockets of the user, or none any more. */
  watch(user: string, isThere: boolean): void;
  /** Resolves when all is heard that was appended anywhere before to prompts of this user. */
  settled(user: string): Promise<void>;
  /** `live`: prompts an earlier process left. */
  start(crew: Crew, live: readonly string[]): Promise<void>;
  /** Others may take over at once. */
  close(): Promise<void>;
}

/** Another process looks after the prompt: nothing more is to be said of it here. */
export class LeadLost extends Error {
  constructor() {
    super('another process looks after this prompt');
  }
}

/** For a rejection: whatever else went wrong is thrown on. */
export function ifLost<Instead>(instead: Instead): (error: unknown) => Instead {
  return (error) => {
    if (error instanceof LeadLost) return instead;
    throw error;
  };
}

/** For a process that is alone: every entry is heard at once, and nobody else can lead. */
export function createLoneJournal(): PromptJournal {
  const hearers = new Map<string, Hearer>();
  return {
    async claim() {},
    takeOver: async () => true,
    async drop(key) {
      hearers.delete(key);
    },
    join: ({ key }, hearer) => void hearers.set(key, hearer),
    async append(key, entry) {
      const hearer = hearers.get(key);
      if (entry.kind === 'recorded' || entry.kind === 'removed') hearers.delete(key);
      await hearer?.apply(entry, 0);
    },
    leads: () => true,
    received() {},
    fetched() {},
    askCancel() {},
    isWatched: () => false,
    watch() {},
    async settled() {},
    start: (crew, live) => crew.vacant(live),
    async close() {},
  };
}
