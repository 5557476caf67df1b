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

export type CachedSource = {
  view(need: Need): Promise<View>;
  /** Result of the last fetch. */
  last(): 'known' | MissingDefinitions['kind'] | undefined;
};

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
export function createCachedSource(options: CachedSourceOptions): CachedSource {
  const { versions, timing, cacheEntry, now, log, name } = options;
  let heldVersion: HeldVersion | undefined;
  let state: SourceState | undefined;
  let pendingFetch: Promise<void> | undefined;
  let restoring: Promise<void> | undefined;

  const currentDefinitions = (): Definitions | undefined =>
    heldVersion && versions.find(heldVersion.version);

  async function storeText(text: DefinitionsText, confirmedAtMs: number): Promise<FetchOutcome> {
    const digest = createHash('sha256').update(text.bytes).digest('base64');
    const { from, validators } = text;
    if (heldVersion?.digest === digest && currentDefinitions()) {
      heldVersion = { ...heldVersion, from, validators };
      return { kind: 'same' };
    }
    const reading = await readDefinitions(text.bytes);
    if (!reading.ok) return { kind: 'none', reason: reading.reason };
    const { definitions, ignoredClasses } = reading;
    versions.keep(definitions, text.bytes.length);
    const { version, members } = definitions;
    heldVersion = { from, validators, version, digest, confirmedAtMs, isConfirmed: false };
    log.info(
      { event: 'definitions.read', source: name, classes: members.size, leftOut: ignoredClasses },
      'read node definitions',
    );
    return { kind: 'text', ...text };
  }

  async function restore(): Promise<void> {
    const text = await cacheEntry?.read();
    if (text) await storeText(text, text.confirmedAtMs);
  }

  async function attempt(): Promise<void> {
    const fetched = await options.fetch(currentDefinitions() ? heldVersion : undefined);
    const outcome = fetched.kind === 'text' ? await storeText(fetched, now()) : fetched;
    if (outcome.kind === 'text') void cacheEntry?.write(outcome);
    if (outcome.kind === 'same') void cacheEntry?.confirm(now());
    recordOutcome(outcome);
  }

  function recordOutcome(outcome: FetchOutcome): void {
    const next = stateAfter(outcome, { atMs: now(), timing, hasVersion: !!currentDefinitions() });
    if (next.kind === 'known' && heldVersion) {
      heldVersion = { ...heldVersion, confirmedAtMs: next.atMs, isConfirmed: true };
    }
    logChange(state, next, { log, name });
    state = next;
  }

  function isDue(need: Need): boolean {
    if (need === 'stored') return false;
    if (!state) return true;
    const ageMs = now() - state.atMs;
    const isConfirmedRefresh = need === 'refresh' && state.kind !== 'failed';
    const waitMs = isConfirmedRefresh ? timing.refreshMs : state.waitMs;
    return ageMs < 0 || ageMs >= waitMs || (state.kind === 'known' && !currentDefinitions());
  }

  function maxWaitMs(need: Need): number {
    if (!currentDefinitions()) return EMPTY_MAX_WAIT_MS[need];
    const minWaitMs =
      need === 'show' && heldVersion?.isConfirmed === false ? UNCONFIRMED_MAX_WAIT_MS : 0;
    return Math.max(minWaitMs, timing.maxWaitMs[need]);
  }

  function current(need: Need): View {
    const definitions = currentDefinitions();
    const isOld = heldVersion !== undefined && now() - heldVersion.confirmedAtMs > MAX_AGE_MS;
    if (definitions && heldVersion && (need === 'use' || !isOld)) {
      return {
        kind: 'definitions',
        definitions,
        isStale: state?.kind !== 'known',
      };
    }
    if (!state || state.kind === 'known') return NOT_YET;
    return { kind: state.kind, isReachable: state.isReachable, retryAfterMs: state.waitMs };
  }

  const onFailure = (error: unknown): void => {
    log.error(
      { event: 'definitions.read_failed', err: error, source: name },
      'could not read node definitions',
    );
    recordOutcome({ kind: 'failed', reason: 'it cannot be read' });
  };
  const clearPendingFetch = (): void => {
    pendingFetch = undefined;
  };

  return {
    last: () => state?.kind,
    async view(need) {
      await (restoring ??= restore());
      if (isDue(need)) {
        pendingFetch ??= attempt().catch(onFailure).finally(clearPendingFetch);
      }
      const waitMs = maxWaitMs(need);
      if (pendingFetch && waitMs > 0) await completesWithin(waitMs, pendingFetch);
      return current(need);
    },
  };
}

const NOT_YET: View = { kind: 'failed', isReachable: false, retryAfterMs: RETRY_MS };
