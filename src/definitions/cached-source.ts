import { createHash } from 'node:crypto';
import type { Logger } from '../observability/log.ts';
import type { Definitions } from './definitions.ts';
import { completesWithin } from '../lib/completes-within.ts';
import {
  type SourceState,
  type MissingDefinitions,
  RETRY_MS,
  stateAfter,
  logChange,
} from './source-state.ts';
import type { CacheEntry } from './disk-cache.ts';
import type { FetchOutcome, DefinitionsText } from './fetch-outcome.ts';
import { readDefinitions } from './parse-definitions.ts';
import {
  EMPTY_MAX_WAIT_MS,
  type Need,
  MAX_AGE_MS,
  type Timing,
  UNCONFIRMED_MAX_WAIT_MS,
} from './timing.ts';

/** Versions in memory, by name; old ones may be evicted. */
export type Versions = {
  find(version: string): Definitions | undefined;
  keep(definitions: Definitions, sizeBytes: number): void;
};

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

const NOT_YET: View = { kind: 'failed', isReachable: false, retryAfterMs: RETRY_MS };
