import { randomBytes } from 'node:crypto';
import type { CapturedBody } from './traffic/captured-body.ts';
import type { TrafficEntry } from './api-types.ts';

/** An entry, its user, and what its detail shows. */
export type RecordedEntry = {
  entry: Omit<TrafficEntry, 'is_other_user'>;
  /** `undefined`: the caller is not known; only the operator sees the call. */
  user: string | undefined;
  requestHeaders?: readonly (readonly [string, string])[];
  responseHeaders?: readonly (readonly [string, string])[];
  request?: CapturedBody;
  response?: CapturedBody;
  requestType?: string;
  responseType?: string;
  /** Of a frame: the byte of its body at which its picture or text starts. */
  contentStart?: number;
};

type NewEntry = Pick<TrafficEntry, 'kind'> & Partial<RecordedEntry['entry']>;

/** A reader that writes them all down slowly must not hold the memory of those that are gone. */
function dropBodies(recorded: RecordedEntry): void {
  delete recorded.request;
  delete recorded.response;
}

const MAX_ENTRIES = 4000;
const MAX_BYTES = 32 * 1024 * 1024;
/** Bytes of memory of an entry without its bodies. */
const ENTRY_BYTES = 1200;
/** A reader that asks no more for so long has gone. */
const LEASE_MS = 90_000;
const ALL_USERS = '*';
/** Further readers of a user share the place of one. */
const MAX_READERS = 20;
const MAX_ANSWERED = 1000;

/** Readers ask for their own traffic, or as the operator for that of all. */
export type TrafficScope = { readonly user: string; readonly isAll: boolean };

/** A tab with an inspector: a user may have several. */
type Reader = TrafficScope & { readonly reader?: string };

export type TrafficStore = ReturnType<typeof createTrafficStore>;

/** Entries in memory while a reader is there; the oldest go when there are too many. */
export function createTrafficStore({ now }: { readonly now: () => number }) {
  const entries = new Map<number, RecordedEntry>();
  /** For each user the end of each reader's time. */
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
    /** True while a reader is there. Asked for every call and frame. */
    isRecording: (): boolean => timer !== undefined,
    /** True when a reader may see traffic of this user. */
    isWanted: (user: string | undefined): boolean =>
      leases.has(ALL_USERS) || (user !== undefined && leases.has(user)),
    /** A reader is there: records from now on. */
    hold({ user, isAll, reader = '' }: Reader): void {
      const name = isAll ? ALL_USERS : user;
      const readers = leases.get(name) ?? new Map<string, number>();
      leases.set(name, readers);
      const isKnown = readers.has(reader) || readers.size < MAX_READERS;
      readers.set(isKnown ? reader : '', now() + LEASE_MS);
      timer ??= setTimeout(expireLeases, LEASE_MS / 2).unref();
    },
    /** The reader has gone. */
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
    /** Changes an entry; one that was removed stays removed. */
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
    /** All entries that the reader may see, oldest first. */
    list: ({ user, isAll }: TrafficScope): readonly RecordedEntry[] =>
      [...entries.values()].filter((recorded) => isAll || recorded.user === user),
    /** Entries that changed after this revision, oldest first; the newest when there are many. */
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
