import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { completesWithin } from '../lib/completes-within.ts';
import type { Logger } from '../observability/log.ts';
import type { Definitions } from './definitions.ts';
import type { DiskCopy } from './disk-copy.ts';
import type { FetchOutcome, Missing, SourceText, TextOrigin } from './fetch-text.ts';
import { readDefinitions } from './parse-definitions.ts';

/** The need of a request: `use` definitions now, `show` them, or show them after a `refresh`. */
export type Need = 'use' | 'show' | 'refresh';

/** The definitions of a source for one account. */
export type View =
  | { readonly kind: 'definitions'; readonly definitions: Definitions; readonly isStale: boolean }
  | { readonly kind: 'missing'; readonly isReachable: boolean; readonly retryAfterMs: number };

/** Versions in memory, by name. Accounts with the same version share it; old ones are evicted. */
type Versions = LRUCache<string, Definitions>;

export function createVersions(): Versions {
  return new LRUCache({ maxSize: 256 * 1024 * 1024 });
}

type SourceOptions = {
  readonly fetch: (known: TextOrigin | undefined) => Promise<FetchOutcome>;
  readonly versions: Versions;
  /** A text is not fetched again during this time. With 0, requests wait for each fetch. */
  readonly freshMs: number;
  readonly copy?: DiskCopy;
  readonly now: () => number;
  readonly log: Logger;
  /** Name of the source for the log. */
  readonly name: string;
};

type HeldVersion = TextOrigin & {
  readonly version: string;
  readonly digest: string;
  readonly confirmedAtMs: number;
};

/** The last outcome, and the time before the next fetch. `missing` is set unless there was a text. */
type SourceState = {
  readonly atMs: number;
  readonly waitMs: number;
  readonly missing?: Missing;
};

/** The time between two fetches that clients demand, and after an answer that may change soon. */
const RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;
/** A version that was not confirmed for longer is not shown any more. */
const MAX_AGE_MS = 24 * 60 * 60_000;
/** How long requests wait while there are no definitions. */
const EMPTY_WAIT_MS = { use: 3_000, show: 60_000, refresh: 60_000 } as const;
/** How long they wait for newer ones. */
const WAIT_MS = { use: 0, show: 0, refresh: 10_000 } as const;

/** Makes one fetch at a time, and serves the last good version meanwhile and afterwards. */
export class CachedSource {
  readonly #options: SourceOptions;
  #held: HeldVersion | undefined;
  #state: SourceState | undefined;
  #isLocked = false;
  #fetching: Promise<void> | undefined;
  #restoring: Promise<void> | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: SourceOptions) {
    this.#options = options;
  }

  /** True when its last answer, before it became unreachable, was that it wants another key. */
  get isLocked(): boolean {
    return this.#isLocked;
  }

  async view(need: Need): Promise<View> {
    await (this.#restoring ??= this.#restore());
    if (this.#isDue(need)) {
      this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined));
    }
    const isEmpty = this.#definitions() === undefined || this.#options.freshMs === 0;
    const waitMs = (isEmpty ? EMPTY_WAIT_MS : WAIT_MS)[need];
    if (this.#fetching && waitMs > 0) await completesWithin(waitMs, this.#fetching);
    return this.#current(need);
  }

  /** Resolves when nothing is being fetched or written any more. */
  async idle(): Promise<void> {
    await this.#fetching;
    await this.#writing;
  }

  #definitions(): Definitions | undefined {
    return this.#held && this.#options.versions.get(this.#held.version);
  }

  async #restore(): Promise<void> {
    const text = await this.#options.copy?.read();
    if (text) await this.#keep(text, text.confirmedAtMs);
  }

  async #fetch(): Promise<void> {
    const { copy, now, fetch } = this.#options;
    await this.#writing;
    const fetched = await fetch(this.#definitions() && this.#held);
    const outcome = fetched.kind === 'text' ? await this.#keep(fetched, now()) : fetched;
    if (outcome.kind === 'text') this.#writing = copy?.write(outcome);
    if (outcome.kind === 'same') this.#writing = copy?.confirm(now());
    this.#record(outcome);
  }

  async #keep(text: SourceText, confirmedAtMs: number): Promise<FetchOutcome> {
    const { versions, log, name } = this.#options;
    const { from, etag, bytes } = text;
    const digest = createHash('sha256').update(bytes).digest('base64');
    if (this.#held?.digest === digest && this.#definitions()) {
      this.#held = { ...this.#held, from, etag };
      return { kind: 'same' };
    }
    const parsed = await readDefinitions(bytes);
    if (!parsed.ok) return { kind: 'none', reason: parsed.reason };
    const { definitions, ignoredClasses: leftOut } = parsed;
    const { version, members } = definitions;
    versions.set(version, definitions, { size: bytes.length });
    this.#held = { from, etag, version, digest, confirmedAtMs };
    const event = 'definitions.read';
    log.info({ event, source: name, classes: members.size, leftOut }, 'read node definitions');
    return { kind: 'text', ...text };
  }

  #record(outcome: FetchOutcome): void {
    const { now, freshMs, log, name: source } = this.#options;
    const atMs = now();
    const before = this.#state?.missing;
    if (outcome.kind === 'text' || outcome.kind === 'same') {
      this.#state = { atMs, waitMs: freshMs };
      this.#isLocked = false;
      if (this.#held) this.#held = { ...this.#held, confirmedAtMs: atMs };
      if (before) log.info({ event: 'definitions.available', source }, 'node definitions are back');
      return;
    }
    const hasVersion = this.#definitions() !== undefined;
    this.#state = { atMs, waitMs: retryDelayMs(outcome, hasVersion, freshMs), missing: outcome };
    const { kind, reason } = outcome;
    if (kind === 'locked' || kind === 'none') this.#isLocked = kind === 'locked';
    // One line for each change, not one for each attempt.
    if (before?.kind === kind) return;
    const level = kind === 'locked' || kind === 'none' ? 'info' : 'warn';
    log[level]({ event: 'definitions.missing', source, reason }, 'got no node definitions');
  }

  #isDue(need: Need): boolean {
    const state = this.#state;
    if (!state) return true;
    const ageMs = this.#options.now() - state.atMs;
    const isFailure = state.missing?.kind === 'failing' || state.missing?.kind === 'unreachable';
    const isRefresh = need === 'refresh' && !isFailure;
    const waitMs = isRefresh ? Math.min(RETRY_MS, state.waitMs) : state.waitMs;
    return ageMs < 0 || ageMs >= waitMs || (!state.missing && !this.#definitions());
  }

  #current(need: Need): View {
    const definitions = this.#definitions();
    const [held, state] = [this.#held, this.#state];
    const isOld = held !== undefined && this.#options.now() - held.confirmedAtMs > MAX_AGE_MS;
    if (definitions && (need === 'use' || !isOld)) {
      return { kind: 'definitions', definitions, isStale: !state || state.missing !== undefined };
    }
    const { missing, waitMs: retryAfterMs = RETRY_MS } = state ?? {};
    const isReachable = missing !== undefined && missing.kind !== 'unreachable';
    return { kind: 'missing', isReachable, retryAfterMs };
  }
}

/** A source that had definitions may have them again soon, and so may an operator's file. */
function retryDelayMs(
  { kind, retryAfterMs = 0 }: Missing,
  hasVersion: boolean,
  freshMs: number,
): number {
  const isAbsent = (kind === 'none' || kind === 'locked') && !hasVersion;
  const delayMs = Math.max(RETRY_MS, isAbsent ? freshMs : retryAfterMs);
  return Math.min(MAX_RETRY_MS, delayMs);
}
