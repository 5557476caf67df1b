import { LRUCache } from 'lru-cache';
import type { Logger } from '../telemetry.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Copies } from './copies.ts';
import type { Fetcher } from './fetch.ts';
import type { Outcome, Text } from './outcome.ts';
import { type Slot, type Versions, type View, createSlot } from './slot.ts';
import { type Need, REMOTE_TIMING } from './timing.ts';

/** Whose key opens definitions that are not for everybody; nobody's where the key is not for this origin. */
export type Keys =
  | { readonly kind: 'nobodys' }
  | { readonly kind: 'callers' }
  | { readonly kind: 'fixed'; readonly key: string };

/** Definitions of a remote source as each caller may see them. */
export type RemoteDefinitions = {
  view(caller: Caller | undefined, need: Need): Promise<View>;
};

const MAX_ACCOUNTS = 1000;

type Deps = {
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  /** Where they may be, best first; all of the fetcher's origin. */
  readonly addresses: readonly string[];
  readonly keys: Keys;
  readonly versions: Versions;
  readonly copies: Copies;
  readonly now: () => number;
  readonly log: Logger;
};

/**
 * Asks without a key first: what anybody may see is fetched once for all. What needs a caller's
 * key is that caller's alone.
 */
export function createRemoteDefinitions(deps: Deps): RemoteDefinitions {
  const { addresses, keys, copies, now, log, versions } = deps;
  const source = addresses.join(' ');
  const slot = (account: string, ask: (known?: Known) => Promise<Outcome>): Slot =>
    createSlot({
      ask,
      versions,
      timing: REMOTE_TIMING,
      copy: copies.of(source, account),
      now,
      log,
      name: new URL(addresses[0] ?? '').origin,
    });
  const shared = slot('everybody', async (known) => {
    const outcome = await walk(deps, { known });
    const isOurs = outcome.kind === 'locked' && keys.kind === 'fixed';
    return isOurs ? walk(deps, { known, key: keys.key }) : outcome;
  });
  const accounts = new LRUCache<string, Slot>({ max: MAX_ACCOUNTS });
  const own = (caller: Caller | undefined): Slot | undefined => {
    if (keys.kind !== 'callers' || caller?.credential === undefined) return undefined;
    const { user, credential: key } = caller;
    const found = accounts.get(user) ?? slot(`user ${user}`, (known) => walk(deps, { known, key }));
    accounts.set(user, found);
    return found;
  };

  return {
    async view(caller, need) {
      const open = await shared.view(need);
      const account = own(caller);
      const isLocked = shared.last() === 'locked';
      if (!account || (open.kind === 'definitions' && !isLocked)) return open;
      // Who cannot be reached without a key cannot be reached with one.
      const view = await account.view(isLocked ? need : 'stored');
      return view.kind === 'definitions' || (isLocked && open.kind !== 'definitions') ? view : open;
    },
  };
}

type Known = Omit<Text, 'bytes'>;

/** The first address that has them, beginning with the one that had them before. */
async function walk(
  { fetcher, addresses }: Pick<Deps, 'fetcher' | 'addresses'>,
  { known, key }: { readonly known: Known | undefined; readonly key?: string },
): Promise<Outcome> {
  let refusal: Outcome | undefined;
  const before = addresses.filter((_, index) => index === known?.from);
  for (const url of new Set([...before, ...addresses])) {
    const from = addresses.indexOf(url);
    const validators = from === known?.from ? known.validators : undefined;
    const outcome = notPage(await fetcher.fetch({ url, key, validators }));
    if (outcome.kind === 'text') return { ...outcome, from };
    if (outcome.kind === 'same') return outcome;
    if (outcome.kind === 'failed' && !outcome.isReached) return outcome;
    if (!refusal || WEIGHT[outcome.kind] > WEIGHT[refusal.kind]) refusal = outcome;
  }
  return refusal ?? { kind: 'none', reason: 'nowhere to ask' };
}

/** What several addresses said, by how much it tells. */
const WEIGHT: { readonly [kind in Outcome['kind']]: number } = {
  text: 4,
  same: 3,
  locked: 2,
  failed: 1,
  none: 0,
};

/** Servers of a front end answer any address with its page. */
function notPage(outcome: Outcome): Outcome {
  if (outcome.kind !== 'text' || /^(\ufeff)?\s*\{/.test(outcome.bytes.toString('utf8', 0, 100))) {
    return outcome;
  }
  return { kind: 'none', reason: 'it answers with something else than JSON' };
}
