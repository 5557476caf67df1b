import { randomBytes } from 'node:crypto';
import type { CapturedBody } from './traffic/captured-body.ts';
import type { TrafficEntry } from './api-types.ts';

/** An entry, its user, and the content of its detail. */
export type RecordedEntry = {
  entry: Omit<TrafficEntry, 'is_other_user'>;
  /** `undefined`: the caller is not known, so only the operator sees the call. */
  user: string | undefined;
  requestHeaders?: readonly (readonly [string, string])[];
  responseHeaders?: readonly (readonly [string, string])[];
  request?: CapturedBody;
  response?: CapturedBody;
  requestType?: string;
  responseType?: string;
  /** For a frame: the byte of its body at which its picture or text starts. */
  contentStart?: number;
};

type NewEntry = Pick<TrafficEntry, 'kind'> & Partial<RecordedEntry['entry']>;

/**
 * Drops the bodies of a removed entry: a reader that writes a long list slowly must not keep their
 * memory.
 */
function dropBodies(recorded: RecordedEntry): void {
  delete recorded.request;
  delete recorded.response;
}

const MAX_ENTRIES = 4000;
const MAX_BYTES = 32 * 1024 * 1024;
/** The assumed size of an entry without its bodies. */
const ENTRY_BYTES = 1200;
/** A reader that does not ask again within this time has left. */
const LEASE_MS = 90_000;
const ALL_USERS = '*';
/** The maximum number of readers of a user; further ones share the last place. */
const MAX_READERS = 20;
const MAX_ANSWERED = 1000;

/** The traffic that a reader sees: its own or, for the operator, that of all users. */
export type TrafficScope = { readonly user: string; readonly isAll: boolean };

/** A browser tab with an inspector. A user may have several. */
type Reader = TrafficScope & { readonly reader?: string };

export type TrafficStore = ReturnType<typeof createTrafficStore>;

/**
 * Keeps entries in memory while a reader exists. When there are too many, the oldest are removed.
 */
export function createTrafficStore({ now }: { readonly now: () => number }) {
  const entries = new Map<number, RecordedEntry>();
  /** For each user, the time at which each reader's lease ends. */
  const leases = new Map<string, Map<string, number>>();
  const server = randomBytes(6).toString('hex');
  let lastId = 0;
  let revision = 0;
  let bytes = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;

  function sizeOf({ request, response, entry }: RecordedEntry): number {
    const texts = (entry.text?.length ?? 0) + (entry.target?.length ?? 0);
    return ENTRY_BYTES + texts + (request?.capturedBytes ?? 0) + (response?.capturedBytes ?? 0);
  }

  function remove(recorded: RecordedEntry): void {
    if (!entries.delete(recorded.entry.id)) return;
    bytes -= sizes.get(recorded) ?? 0;
    dropBodies(recorded);
  }
  const sizes = new WeakMap<RecordedEntry, number>();

  function measure(recorded: RecordedEntry): void {
    const size = sizeOf(recorded);
    bytes += size - (sizes.get(recorded) ?? 0);
    sizes.set(recorded, size);
    for (const oldest of entries.values()) {
      if (entries.size <= MAX_ENTRIES && bytes <= MAX_BYTES) return;
      remove(oldest);
      dropped++;
    }
  }

  function expireLeases(): void {
    for (const [user, readers] of leases) {
      for (const [reader, untilMs] of readers) if (untilMs <= now()) readers.delete(reader);
      if (readers.size === 0) leases.delete(user);
    }
    clearTimeout(timer);
    timer = undefined;
    if (leases.size > 0) timer = setTimeout(expireLeases, LEASE_MS / 2).unref();
    else clear();
  }

  function clear(): void {
    entries.forEach(dropBodies);
    entries.clear();
    bytes = 0;
    dropped = 0;
  }

  return {
    /** True while a reader exists. Called for every call and frame. */
    isRecording: (): boolean => timer !== undefined,
    /** True when a reader may see traffic of this user. */
    isWanted: (user: string | undefined): boolean =>
      leases.has(ALL_USERS) || (user !== undefined && leases.has(user)),
    /** Records from now on, for this reader. */
    hold({ user, isAll, reader = '' }: Reader): void {
      const name = isAll ? ALL_USERS : user;
      const readers = leases.get(name) ?? new Map<string, number>();
      leases.set(name, readers);
      const isKnown = readers.has(reader) || readers.size < MAX_READERS;
      readers.set(isKnown ? reader : '', now() + LEASE_MS);
      timer ??= setTimeout(expireLeases, LEASE_MS / 2).unref();
    },
    /** Ends the lease of a reader that has left. */
    release({ user, isAll, reader = '' }: Reader): void {
      leases.get(isAll ? ALL_USERS : user)?.delete(reader);
      expireLeases();
    },
    add(recorded: Omit<RecordedEntry, 'entry'> & { readonly entry: NewEntry }): RecordedEntry {
      const unknown = { ms: null, prompt_id: null, job_id: null, cause_id: null } as const;
      const made = { id: ++lastId, revision: ++revision, at_ms: now(), ...unknown };
      const entry: RecordedEntry['entry'] = { ...made, ...recorded.entry };
      const stored: RecordedEntry = { ...recorded, entry };
      entries.set(entry.id, stored);
      measure(stored);
      return stored;
    },
    /** Changes an entry. A removed entry stays removed. */
    update(recorded: RecordedEntry, change: Partial<RecordedEntry['entry']>): void {
      recorded.entry = { ...recorded.entry, ...change, revision: ++revision };
      if (entries.has(recorded.entry.id)) measure(recorded);
    },
    remove,
    clear,
    find(id: number, { user, isAll }: TrafficScope): RecordedEntry | undefined {
      const found = entries.get(id);
      return found && (isAll || found.user === user) ? found : undefined;
    },
    /** Returns all entries that the reader may see, oldest first. */
    list: ({ user, isAll }: TrafficScope): readonly RecordedEntry[] =>
      [...entries.values()].filter((recorded) => isAll || recorded.user === user),
    /**
     * Returns the entries that changed after this revision, oldest first. Of many, only the newest.
     */
    changedAfter(after: number, { user, isAll }: TrafficScope) {
      const changed = [...entries.values()].filter(
        (recorded) => recorded.entry.revision > after && (isAll || recorded.user === user),
      );
      const [oldest] = entries.keys();
      return {
        server,
        revision,
        entries: changed.slice(-MAX_ANSWERED).map((recorded) => ({
          ...recorded.entry,
          is_other_user: recorded.user !== user,
        })),
        dropped,
        memory_bytes: bytes,
        oldest_id: oldest ?? lastId + 1,
      };
    },
    server,
    close(): void {
      clearTimeout(timer);
      timer = undefined;
      clear();
    },
  };
}
