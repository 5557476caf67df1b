import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import type { Logger } from '../observability/log.ts';
import type { Definitions } from './definitions.ts';
import { completesWithin } from '../lib/completes-within.ts';
import type { CacheEntry } from './disk-cache.ts';
import type { FetchOutcome, DefinitionsText } from './fetcher.ts';
import { readDefinitions } from './parse-definitions.ts';
import {
  EMPTY_MAX_WAIT_MS,
  type Need,
  MAX_AGE_MS,
  type Timing,
  UNCONFIRMED_MAX_WAIT_MS,
} from './timing.ts';

const VERSION_BYTES = 256 * 1024 * 1024;

/** Versions in memory, by name; old ones may be evicted. */
export type Versions = ReturnType<typeof createVersions>;

export function createVersions() {
  const versions = new LRUCache<string, Definitions>({ maxSize: VERSION_BYTES });
  return {
    find: (version: string): Definitions | undefined => versions.get(version),
    keep: (definitions: Definitions, size: number): void =>
      void versions.set(definitions.version, definitions, { size }),
  };
}

/** The definitions of one source for one account. */
export type View =
  | { readonly kind: 'definitions'; readonly definitions: Definitions; readonly isStale: boolean }
  | (MissingDefinitions & { readonly retryAfterMs: number });

type HeldVersion = Omit<DefinitionsText, 'bytes'> & {
  readonly version: string;
  readonly digest: string;
  readonly confirmedAtMs: number;
  readonly isConfirmed: boolean;
};

type CachedSourceOptions = {
  readonly fetch: (known: Omit<DefinitionsText, 'bytes'> | undefined) => Promise<FetchOutcome>;
  readonly versions: Versions;
  readonly timing: Timing;
  readonly cacheEntry?: CacheEntry | undefined;
  readonly now: () => number;
  readonly log: Logger;
  /** Name of the source for the log. */
  readonly name: string;
};

/** Makes one fetch at a time, and serves the last good version meanwhile and afterwards. */
export class CachedSource {
  readonly #options: CachedSourceOptions;
  #heldVersion: HeldVersion | undefined;
  #state: SourceState | undefined;
  #pendingFetch: Promise<void> | undefined;
  #restoring: Promise<void> | undefined;

  constructor(options: CachedSourceOptions) {
    this.#options = options;
  }

  /** Result of the last fetch. */
  last(): 'known' | MissingDefinitions['kind'] | undefined {
    return this.#state?.kind;
  }

  async view(need: Need): Promise<View> {
    await (this.#restoring ??= this.#restore());
    if (this.#isDue(need)) this.#pendingFetch ??= this.#fetch();
    const waitMs = this.#maxWaitMs(need);
    if (this.#pendingFetch && waitMs > 0) await completesWithin(waitMs, this.#pendingFetch);
    return this.#current(need);
  }

  #definitions(): Definitions | undefined {
    return this.#heldVersion && this.#options.versions.find(this.#heldVersion.version);
  }

  async #restore(): Promise<void> {
    const text = await this.#options.cacheEntry?.read();
    if (text) await this.#storeText(text, text.confirmedAtMs);
  }

  async #fetch(): Promise<void> {
    try {
      await this.#fetchAndStore();
    } catch (error) {
      const { log, name } = this.#options;
      const event = 'definitions.read_failed';
      log.error({ event, err: error, source: name }, 'could not read node definitions');
      this.#recordOutcome({ kind: 'failed', reason: 'it cannot be read' });
    } finally {
      this.#pendingFetch = undefined;
    }
  }

  async #fetchAndStore(): Promise<void> {
    const { cacheEntry, now } = this.#options;
    const fetched = await this.#options.fetch(this.#definitions() ? this.#heldVersion : undefined);
    const outcome = fetched.kind === 'text' ? await this.#storeText(fetched, now()) : fetched;
    if (outcome.kind === 'text') void cacheEntry?.write(outcome);
    if (outcome.kind === 'same') void cacheEntry?.confirm(now());
    this.#recordOutcome(outcome);
  }

  async #storeText(text: DefinitionsText, confirmedAtMs: number): Promise<FetchOutcome> {
    const { versions, log, name } = this.#options;
    const digest = createHash('sha256').update(text.bytes).digest('base64');
    const { from, validators } = text;
    if (this.#heldVersion?.digest === digest && this.#definitions()) {
      this.#heldVersion = { ...this.#heldVersion, from, validators };
      return { kind: 'same' };
    }
    const reading = await readDefinitions(text.bytes);
    if (!reading.ok) return { kind: 'none', reason: reading.reason };
    const { definitions, ignoredClasses } = reading;
    versions.keep(definitions, text.bytes.length);
    const { version, members } = definitions;
    this.#heldVersion = { from, validators, version, digest, confirmedAtMs, isConfirmed: false };
    const event = 'definitions.read';
    const counts = { classes: members.size, leftOut: ignoredClasses };
    log.info({ event, source: name, ...counts }, 'read node definitions');
    return { kind: 'text', ...text };
  }

  #recordOutcome(outcome: FetchOutcome): void {
    const { now, timing, log, name } = this.#options;
    const hasVersion = this.#definitions() !== undefined;
    const next = stateAfter(outcome, { atMs: now(), timing, hasVersion });
    if (next.kind === 'known' && this.#heldVersion) {
      this.#heldVersion = { ...this.#heldVersion, confirmedAtMs: next.atMs, isConfirmed: true };
    }
    logChange(this.#state, next, { log, name });
    this.#state = next;
  }

  #isDue(need: Need): boolean {
    const { now, timing } = this.#options;
    const state = this.#state;
    if (need === 'stored') return false;
    if (!state) return true;
    const ageMs = now() - state.atMs;
    const isConfirmedRefresh = need === 'refresh' && state.kind !== 'failed';
    const waitMs = isConfirmedRefresh ? timing.refreshMs : state.waitMs;
    return ageMs < 0 || ageMs >= waitMs || (state.kind === 'known' && !this.#definitions());
  }

  #maxWaitMs(need: Need): number {
    if (!this.#definitions()) return EMPTY_MAX_WAIT_MS[need];
    const isUnconfirmed = this.#heldVersion?.isConfirmed === false;
    const minWaitMs = need === 'show' && isUnconfirmed ? UNCONFIRMED_MAX_WAIT_MS : 0;
    return Math.max(minWaitMs, this.#options.timing.maxWaitMs[need]);
  }

  #current(need: Need): View {
    const definitions = this.#definitions();
    const [held, state] = [this.#heldVersion, this.#state];
    const isOld = held !== undefined && this.#options.now() - held.confirmedAtMs > MAX_AGE_MS;
    if (definitions && held && (need === 'use' || !isOld)) {
      return { kind: 'definitions', definitions, isStale: state?.kind !== 'known' };
    }
    if (!state || state.kind === 'known') return NOT_YET;
    return { kind: state.kind, isReachable: state.isReachable, retryAfterMs: state.waitMs };
  }
}

/** Why a source has no definitions. */
type MissingDefinitions = {
  readonly kind: 'none' | 'locked' | 'failed';
  readonly isReachable: boolean;
};

/** The last outcome of a source, and the time before the next fetch. */
type SourceState = { readonly atMs: number; readonly waitMs: number } & (
  | { readonly kind: 'known' }
  | (MissingDefinitions & { readonly reason: string })
);

/** After a failure, or after an answer that a client wants to change. */
const RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;
const LOCKED_RETRY_MS = 10 * 60_000;

/** The time of the next fetch and the state after an outcome. */
function stateAfter(
  outcome: FetchOutcome,
  {
    atMs,
    timing,
    hasVersion,
  }: { atMs: number; timing: Pick<Timing, 'freshMs' | 'absentMs'>; hasVersion: boolean },
): SourceState {
  switch (outcome.kind) {
    case 'text':
      return { kind: 'known', atMs, waitMs: timing.freshMs };
    case 'same':
      if (hasVersion) return { kind: 'known', atMs, waitMs: timing.freshMs };
      return {
        kind: 'failed',
        reason: 'it answers 304 unasked',
        isReachable: true,
        atMs,
        waitMs: RETRY_MS,
      };
    case 'none':
      // A source that had definitions may have them again soon.
      return {
        ...outcome,
        isReachable: true,
        atMs,
        waitMs: hasVersion ? RETRY_MS : timing.absentMs,
      };
    case 'locked':
      return { ...outcome, isReachable: true, atMs, waitMs: LOCKED_RETRY_MS };
    case 'failed': {
      const { reason, retryAfterMs = 0, isReachable = false } = outcome;
      const waitMs = Math.min(MAX_RETRY_MS, Math.max(RETRY_MS, retryAfterMs));
      return { kind: 'failed', reason, isReachable, atMs, waitMs };
    }
  }
}

/** One line in the log for each change, not one for each attempt. */
function logChange(
  before: SourceState | undefined,
  after: SourceState,
  { log, name }: { log: Logger; name: string },
): void {
  if (after.kind === 'known') {
    if (before && before.kind !== 'known')
      log.info(
        { event: 'definitions.available', source: name },
        'node definitions are available again',
      );
    return;
  }
  if (before?.kind === after.kind) return;
  const { kind, reason } = after;
  log[kind === 'failed' ? 'warn' : 'info'](
    { event: 'definitions.missing', source: name, reason },
    MISSING_MESSAGES[kind],
  );
}

const MISSING_MESSAGES: { readonly [kind in MissingDefinitions['kind']]: string } = {
  none: 'the source has no node definitions',
  locked: 'the source wants a key for its node definitions',
  failed: 'could not fetch node definitions',
};

const NOT_YET: View = { kind: 'failed', isReachable: false, retryAfterMs: RETRY_MS };
