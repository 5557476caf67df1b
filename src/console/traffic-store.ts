import { randomBytes } from 'node:crypto';
import type { CapturedBody } from './traffic/captured-body.ts';
import type { TrafficAnswer, TrafficEntry } from './api-types.ts';

/** An entry, its user, and the content of its detail. */
export type RecordedEntry = {
  entry: Omit<TrafficEntry, 'is_other_user'>;
  /** `undefined` when the caller is not known. Then only the operator sees the call. */
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

type NewEntry = { readonly kind: TrafficEntry['kind'] } & Partial<RecordedEntry['entry']>;

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
/** The maximum number of users whose traffic is recorded at a time. */
const MAX_USERS = 1000;
const MAX_ANSWERED = 1000;

/** The traffic that a reader sees: its own or, for the operator, that of all users. */
export type TrafficScope = { readonly user: string; readonly isAll: boolean };

/**
 * Keeps entries in memory while a reader exists. When there are too many, the oldest are removed.
 */
export class TrafficStore {
  /** The id of this process among the servers. */
  readonly server = randomBytes(6).toString('hex');
  readonly #now: () => number;
  readonly #entries = new Map<number, RecordedEntry>();
  readonly #sizes = new WeakMap<RecordedEntry, number>();
  /** For each user, the time at which the lease of the readers ends. */
  readonly #leases = new Map<string, number>();
  #lastId = 0;
  #revision = 0;
  #bytes = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ now }: { readonly now: () => number }) {
    this.#now = now;
  }

  /** True while a reader exists. Called for every call and frame. */
  readonly isRecording = (): boolean => this.#timer !== undefined;

  /** Returns true when a reader may see traffic of this user. */
  isWanted(user: string | undefined): boolean {
    return this.#leases.has(ALL_USERS) || (user !== undefined && this.#leases.has(user));
  }

  /** Starts recording for a reader of this scope, or renews the lease. */
  hold({ user, isAll }: TrafficScope): void {
    const name = isAll ? ALL_USERS : user;
    if (!isAll && !this.#leases.has(name) && this.#leases.size >= MAX_USERS) return;
    this.#leases.set(name, this.#now() + LEASE_MS);
    this.#timer ??= this.#startTimer();
  }

  add(recorded: Omit<RecordedEntry, 'entry'> & { readonly entry: NewEntry }): RecordedEntry {
    const unknown = { ms: null, prompt_id: null, job_id: null, cause_id: null } as const;
    const at = { id: ++this.#lastId, revision: ++this.#revision, at_ms: this.#now() };
    const entry: RecordedEntry['entry'] = { ...at, ...unknown, ...recorded.entry };
    const stored: RecordedEntry = { ...recorded, entry };
    this.#entries.set(entry.id, stored);
    this.#measure(stored);
    return stored;
  }

  /** Changes an entry. A removed entry stays removed. */
  update(recorded: RecordedEntry, change: Partial<RecordedEntry['entry']>): void {
    recorded.entry = { ...recorded.entry, ...change, revision: ++this.#revision };
    if (this.#entries.has(recorded.entry.id)) this.#measure(recorded);
  }

  remove(recorded: RecordedEntry): void {
    if (!this.#entries.delete(recorded.entry.id)) return;
    this.#bytes -= this.#sizes.get(recorded) ?? 0;
    dropBodies(recorded);
  }

  clear(): void {
    this.#entries.forEach(dropBodies);
    this.#entries.clear();
    this.#bytes = 0;
    this.#dropped = 0;
  }

  find(id: number, { user, isAll }: TrafficScope): RecordedEntry | undefined {
    const found = this.#entries.get(id);
    return found && (isAll || found.user === user) ? found : undefined;
  }

  /**
   * Returns the entries that changed after this revision, oldest first. If there are many, returns only the newest.
   */
  changedAfter(after: number, { user, isAll }: TrafficScope): Omit<TrafficAnswer, 'servers'> {
    const changed = [...this.#entries.values()].filter(
      (recorded) => (isAll || recorded.user === user) && recorded.entry.revision > after,
    );
    const [oldest] = this.#entries.keys();
    return {
      server: this.server,
      revision: this.#revision,
      entries: changed.slice(-MAX_ANSWERED).map((recorded) => ({
        ...recorded.entry,
        is_other_user: recorded.user !== user,
      })),
      dropped: this.#dropped,
      memory_bytes: this.#bytes,
      oldest_id: oldest ?? this.#lastId + 1,
    };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.clear();
  }

  #measure(recorded: RecordedEntry): void {
    const size = sizeOf(recorded);
    this.#bytes += size - (this.#sizes.get(recorded) ?? 0);
    this.#sizes.set(recorded, size);
    for (const oldest of this.#entries.values()) {
      if (this.#entries.size <= MAX_ENTRIES && this.#bytes <= MAX_BYTES) return;
      this.remove(oldest);
      this.#dropped++;
    }
  }

  #startTimer(): NodeJS.Timeout {
    return setTimeout(() => this.#expireLeases(), LEASE_MS / 2).unref();
  }

  #expireLeases(): void {
    for (const [user, untilMs] of this.#leases)
      if (untilMs <= this.#now()) this.#leases.delete(user);
    this.#timer = undefined;
    if (this.#leases.size > 0) this.#timer = this.#startTimer();
    else this.clear();
  }
}

function sizeOf({
  request,
  response,
  entry,
  requestHeaders = [],
  responseHeaders = [],
}: RecordedEntry): number {
  const headers = [requestHeaders, responseHeaders].flat(2).join('').length;
  const texts = (entry.text?.length ?? 0) + (entry.target?.length ?? 0) + headers;
  return ENTRY_BYTES + texts + (request?.capturedBytes ?? 0) + (response?.capturedBytes ?? 0);
}
