import { LRUCache } from 'lru-cache';
import type { Logger } from '../observability/log.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { DefinitionsCache } from './disk-cache.ts';
import type { Fetcher, FetchOutcome, DefinitionsText } from './fetcher.ts';
import { type Versions, type View, CachedSource } from './cached-source.ts';
import { type Need, REMOTE_TIMING } from './timing.ts';
import { atMost } from '../lib/lru-size.ts';

/** The key that opens protected definitions; none where the key is not for this origin. */
export type KeyPolicy =
  | { readonly kind: 'nobodys' }
  | { readonly kind: 'callers' }
  | { readonly kind: 'fixed'; readonly key: string };

/** Definitions of a remote source as each caller may see them. */
export type RemoteDefinitions = ReturnType<typeof createRemoteDefinitions>;

const MAX_ACCOUNTS = 1000;

type RemoteDefinitionsOptions = {
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  /** Where they may be, best first; all of the fetcher's origin. */
  readonly urls: readonly string[];
  readonly keyPolicy: KeyPolicy;
  readonly versions: Versions;
  readonly cache: DefinitionsCache;
  readonly now: () => number;
  readonly log: Logger;
};

/**
 * Fetches without a key first: public definitions are fetched once for all. Definitions that need a
 * caller's key are shown to that caller only.
 */
export function createRemoteDefinitions(options: RemoteDefinitionsOptions) {
  const { urls, keyPolicy, cache, now, log, versions } = options;
  const source = urls.join(' ');
  const createAccountSource = (
    account: string,
    ask: (known?: KnownVersion) => Promise<FetchOutcome>,
  ): CachedSource =>
    new CachedSource({
      fetch: ask,
      versions,
      timing: REMOTE_TIMING,
      cacheEntry: cache.entryFor(source, account),
      now,
      log,
      name: new URL(urls[0] ?? '').origin,
    });
  const shared = createAccountSource('everybody', async (known) => {
    const outcome = await fetchFirst(options, { known });
    const isOurs = outcome.kind === 'locked' && keyPolicy.kind === 'fixed';
    return isOurs ? fetchFirst(options, { known, key: keyPolicy.key }) : outcome;
  });
  const accountSources = new LRUCache<string, CachedSource>(atMost(MAX_ACCOUNTS));
  const sourceOf = (caller: Caller | undefined): CachedSource | undefined => {
    if (keyPolicy.kind !== 'callers' || caller?.credential === undefined) return undefined;
    const { user, credential: key } = caller;
    const found =
      accountSources.get(user) ??
      createAccountSource(`user ${user}`, (known) => fetchFirst(options, { known, key }));
    accountSources.set(user, found);
    return found;
  };

  return {
    async view(caller: Caller | undefined, need: Need): Promise<View> {
      const open = await shared.view(need);
      const account = sourceOf(caller);
      const isLocked = shared.last() === 'locked';
      if (!account || (open.kind === 'definitions' && !isLocked)) return open;
      // A source that cannot be reached without a key cannot be reached with one.
      const view = await account.view(isLocked ? need : 'stored');
      return view.kind === 'definitions' || (isLocked && open.kind !== 'definitions') ? view : open;
    },
  };
}

type KnownVersion = Omit<DefinitionsText, 'bytes'>;

/** The first address that has them, beginning with the one that had them before. */
async function fetchFirst(
  { fetcher, urls }: Pick<RemoteDefinitionsOptions, 'fetcher' | 'urls'>,
  { known, key }: { readonly known: KnownVersion | undefined; readonly key?: string },
): Promise<FetchOutcome> {
  let refusal: FetchOutcome | undefined;
  const before = urls.filter((_, index) => index === known?.from);
  for (const url of new Set([...before, ...urls])) {
    const from = urls.indexOf(url);
    const validators = from === known?.from ? known.validators : undefined;
    const outcome = rejectPage(await fetcher.fetch({ url, key, validators }));
    if (outcome.kind === 'text') return { ...outcome, from };
    if (outcome.kind === 'same') return outcome;
    if (outcome.kind === 'failed' && !outcome.isReachable) return outcome;
    if (!refusal || PRECEDENCE[outcome.kind] > PRECEDENCE[refusal.kind]) refusal = outcome;
  }
  return refusal ?? { kind: 'none', reason: 'nowhere to ask' };
}

/** Precedence of the outcomes of several addresses. */
const PRECEDENCE: { readonly [kind in FetchOutcome['kind']]: number } = {
  text: 4,
  same: 3,
  locked: 2,
  failed: 1,
  none: 0,
};

/** Servers of a front end answer any address with its page. */
function rejectPage(outcome: FetchOutcome): FetchOutcome {
  if (outcome.kind !== 'text' || /^(\ufeff)?\s*\{/.test(outcome.bytes.toString('utf8', 0, 100))) {
    return outcome;
  }
  return { kind: 'none', reason: 'it answers with something else than JSON' };
}
