import { LRUCache } from 'lru-cache';
import type { ObjectInfoSource, Upstream } from '../config/upstream.ts';
import type { Logger } from '../telemetry.ts';
import type { DefinitionSource, Definitions, Known } from '../wire/definitions.ts';
import type { Caller } from '../wire/jobs.ts';
import type { ObjectInfo } from '../wire/v1.ts';
import { createCopies } from './copies.ts';
import { FETCH_LIMITS, type FetchLimits, createFetcher } from './fetch.ts';
import { readSourceFile } from './file.ts';
import { definitionsOf } from './read.ts';
import { type Keys, type RemoteDefinitions, createRemoteDefinitions } from './remote.ts';
import { type Versions, createSlot } from './slot.ts';
import { FILE_TIMING, type Need } from './timing.ts';

/** The definitions of the house. */
export type OpenDefinitions = DefinitionSource & {
  /** Asks the source before somebody waits for it, and the log tells what is wrong with it. */
  start(): void;
  close(): Promise<void>;
};

/** What of the upstream matters here: where it is, and whose key it takes. */
type Behind =
  | { readonly kind: 'embedded' }
  | Pick<Upstream & { kind: 'remote' }, 'kind' | 'url' | 'key'>;

type Deps = {
  readonly source: ObjectInfoSource;
  readonly upstream: Behind;
  /** The library shipped with the house. */
  readonly embedded: ObjectInfo;
  /** Where copies of remote answers are kept. */
  readonly copiesDir: string;
  readonly log: Logger;
  readonly now?: () => number;
  readonly limits?: Partial<FetchLimits>;
};

const VERSION_BYTES = 256 * 1024 * 1024;

/** Opens the configured source of node definitions. */
export function openDefinitions(deps: Deps): OpenDefinitions {
  const { source, upstream } = deps;
  const embedded = definitionsOf(deps.embedded);
  const isRemote = upstream.kind === 'remote';
  if (source.kind === 'file') {
    const file = fileDefinitions(deps, source.path);
    const start = () => void file.view(undefined, 'use');
    return { ...serve(file, embedded, 'must exist'), start, close: async () => {} };
  }
  if (source.kind === 'url') return openRemote(deps, { addresses: [source.url], embedded });
  if (source.kind === 'auto' && isRemote) {
    return openRemote(deps, { addresses: addressesAt(upstream.url), embedded });
  }
  const library = serveEmbedded(embedded, { isStandIn: isRemote });
  return { ...library, start: () => {}, close: async () => {} };
}

function openRemote(
  deps: Deps,
  { addresses, embedded }: { addresses: readonly string[]; embedded: Definitions },
): OpenDefinitions {
  const { source, upstream, copiesDir, log, now = Date.now, limits } = deps;
  const { origin } = new URL(addresses[0] ?? '');
  const fetcher = createFetcher(origin, { ...FETCH_LIMITS, ...limits });
  const copies = createCopies({ root: copiesDir, log });
  const remote = createRemoteDefinitions({
    fetcher,
    addresses,
    keys: keysFor(origin, upstream),
    versions: createVersions(),
    copies,
    now,
    log,
  });
  return {
    ...serve(remote, embedded, source.kind === 'auto' ? 'may be missing' : 'must exist'),
    start: () => void remote.view(undefined, 'use'),
    async close() {
      await fetcher.close();
      await copies.settled();
    },
  };
}

/** Keys are for the upstream's own origin and for no other. */
function keysFor(origin: string, upstream: Behind): Keys {
  if (upstream.kind === 'embedded' || new URL(upstream.url).origin !== origin) {
    return { kind: 'nobodys' };
  }
  return upstream.key === undefined ? { kind: 'callers' } : { kind: 'fixed', key: upstream.key };
}

/** Beside the service itself where it is mounted somewhere, then where v1 servers have them. */
function addressesAt(upstreamUrl: string): readonly string[] {
  const { origin, pathname } = new URL(upstreamUrl);
  const mount = pathname.replace(/\/+$/, '').replace(/\/api\/v2$/, '');
  const prefixes = new Set([mount, '']);
  return [...prefixes].flatMap((prefix) =>
    ['/api/object_info', '/object_info'].map((path) => origin + prefix + path),
  );
}

function fileDefinitions(deps: Deps, path: string): RemoteDefinitions {
  const { log, now = Date.now, limits } = deps;
  const slot = createSlot({
    ask: (known) => readSourceFile(path, known?.validators, limits?.maxBytes),
    versions: createVersions(),
    timing: FILE_TIMING,
    name: path,
    now,
    log,
  });
  return { view: (_caller, need) => slot.view(need) };
}

function createVersions(): Versions {
  const versions = new LRUCache<string, Definitions>({ maxSize: VERSION_BYTES });
  return {
    find: (version) => versions.get(version),
    keep: (definitions, size) => void versions.set(definitions.version, definitions, { size }),
  };
}

function serveEmbedded(definitions: Definitions, how: { isStandIn: boolean }): DefinitionSource {
  const known = async (): Promise<Known> => ({ ok: true, definitions, isStale: false, ...how });
  return { known, refreshed: known, info: async () => definitions.info };
}

/** Prompts are never held up by this; who asks for definitions hears when there are none. */
function serve(
  source: RemoteDefinitions,
  embedded: Definitions,
  whenMissing: 'must exist' | 'may be missing',
): DefinitionSource {
  const answer = async (caller: Caller, need: Need): Promise<Known> => {
    const view = await source.view(caller, need);
    if (view.kind === 'definitions') return { ok: true, isStandIn: false, ...view };
    if (whenMissing === 'may be missing' && view.isReached) {
      return { ok: true, definitions: embedded, isStandIn: true, isStale: false };
    }
    return { ok: false, retryAfterSeconds: Math.ceil(view.retryAfterMs / 1000) };
  };
  return {
    known: (caller) => answer(caller, 'show'),
    refreshed: (caller) => answer(caller, 'refresh'),
    async info(caller) {
      const view = await source.view(caller, 'use');
      return (view.kind === 'definitions' ? view.definitions : embedded).info;
    },
  };
}
