import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ObjectInfoSource, Upstream } from '../config/upstream.ts';
import { atMost } from '../lib/lru-size.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { DefinitionSource, DefinitionsResult } from './definitions.ts';
import { createDiskCopy } from './disk-copy.ts';
import { FETCH_LIMITS, type FetchLimits, fetchText, readText } from './fetch-text.ts';
import { toDefinitions } from './parse-definitions.ts';
import { CachedSource, type Need, type View, createVersions } from './source.ts';

/** The node definitions of this server. */
export type OpenDefinitions = DefinitionSource & {
  /** Fetches from the source before the first request, and logs its faults. */
  start(): void;
  close(): Promise<void>;
};

type OpenDefinitionsOptions = {
  readonly source: ObjectInfoSource;
  /** The part of the upstream that matters here: its address and its key. */
  readonly upstream:
    | { readonly kind: 'embedded' }
    | Pick<Upstream & { kind: 'remote' }, 'kind' | 'url' | 'key'>;
  /** The definitions of the embedded engine. */
  readonly embedded: ObjectInfo;
  /** Classes that it does not run; programs read names of samplers and models from them. */
  readonly described?: ObjectInfo;
  /** Folder of the copy of a remote source's answer. */
  readonly cacheDir: string;
  readonly log: Logger;
  readonly now?: () => number;
  readonly limits?: Partial<FetchLimits>;
};

/** The definitions of the embedded engine, and those with the classes it only describes. */
type Embedded = Required<Pick<DefinitionsResult & { ok: true }, 'definitions' | 'forPrograms'>>;

/** A source as each caller may see it. */
type CallerSource = {
  view(caller: Caller | undefined, need: Need): Promise<View>;
  close(): Promise<void>;
};

/** Definitions of further accounts are fetched anew. */
const MAX_ACCOUNTS = 1000;
const REMOTE_FRESH_MS = 60_000;

/** Opens the configured source of node definitions. */
export function openDefinitions(options: OpenDefinitionsOptions): OpenDefinitions {
  const { source, upstream } = options;
  const embedded: Embedded = {
    definitions: toDefinitions(options.embedded),
    forPrograms: toDefinitions({ ...options.described, ...options.embedded }),
  };
  if (source.kind === 'file') return serveSource(openFile(options, source.path), embedded, 'error');
  if (source.kind === 'url') {
    return serveSource(openRemote(options, [source.url]), embedded, 'error');
  }
  const isRemote = upstream.kind === 'remote';
  const isAsked = source.kind === 'auto' && isRemote;
  const asked = isAsked ? openRemote(options, candidateUrls(upstream.url)) : NO_SOURCE;
  return serveSource(asked, embedded, isRemote ? 'fallback' : 'embedded');
}

const NO_SOURCE: CallerSource = {
  view: async () => ({ kind: 'missing', isReachable: true, retryAfterMs: 0 }),
  close: async () => {},
};

function openFile(options: OpenDefinitionsOptions, path: string): CallerSource {
  const { log, now = Date.now } = options;
  const limits = { ...FETCH_LIMITS, ...options.limits };
  const source = new CachedSource({
    fetch: (known) => readText(path, known, limits),
    versions: createVersions(),
    freshMs: 0,
    name: path,
    now,
    log,
  });
  return { view: (_caller, need) => source.view(need), close: () => source.idle() };
}

function digestOf(identity: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex');
}

type FetchWith = (
  key: string | undefined,
) => ConstructorParameters<typeof CachedSource>[0]['fetch'];

/**
 * Fetches without a key first: public definitions are fetched once for all. Definitions that need a
 * caller's key are shown to that caller only, and are not stored on disk.
 */
function openRemote(options: OpenDefinitionsOptions, urls: readonly string[]): CallerSource {
  const { upstream, cacheDir: root, log, now = Date.now } = options;
  const limits = { ...FETCH_LIMITS, ...options.limits };
  const { origin } = new URL(urls[0] ?? '');
  // Keys are for the upstream's own origin and for no other.
  const isOwn = upstream.kind === 'remote' && new URL(upstream.url).origin === origin;
  const fixedKey = isOwn ? upstream.key : undefined;
  const stop = new AbortController();
  const { signal } = stop;
  const common = { versions: createVersions(), freshMs: REMOTE_FRESH_MS, now, log, name: origin };
  const fetchWith: FetchWith = (key) => (known) => fetchText(urls, { key, known, limits, signal });
  const shared = new CachedSource({
    ...common,
    copy: createDiskCopy({ root, source: digestOf([urls, fixedKey !== undefined]), log }),
    async fetch(known) {
      const outcome = await fetchWith(undefined)(known);
      if (outcome.kind !== 'locked' || fixedKey === undefined) return outcome;
      return await fetchWith(fixedKey)(known);
    },
  });
  const accounts = new LRUCache<string, CachedSource>(atMost(MAX_ACCOUNTS));
  const accountOf = ({ user, credential: key }: Caller): CachedSource => {
    const account = accounts.get(user) ?? new CachedSource({ ...common, fetch: fetchWith(key) });
    accounts.set(user, account);
    return account;
  };
  return {
    async view(caller, need) {
      const open = await shared.view(need);
      const hasOwnKey = isOwn && fixedKey === undefined && caller?.credential !== undefined;
      if (!hasOwnKey || !shared.isLocked) return open;
      const own = await accountOf(caller).view(need);
      return own.kind === 'definitions' || open.kind === 'missing' ? own : open;
    },
    async close() {
      stop.abort();
      await shared.idle();
    },
  };
}

/** Below the service's mount prefix first, then at the paths of v1 servers. */
function candidateUrls(upstreamUrl: string): readonly string[] {
  const { origin, pathname } = new URL(upstreamUrl);
  const mount = pathname.replace(/(^|[^/])\/+$/, '$1').replace(/\/api\/v2$/, '');
  const prefixes = new Set([mount, '']);
  return [...prefixes].flatMap((prefix) =>
    ['/api/object_info', '/object_info'].map((path) => origin + prefix + path),
  );
}

/**
 * Prompts never wait long for this. A request for definitions gets an error when there are none;
 * those of an upstream without any are the embedded engine's.
 */
function serveSource(
  source: CallerSource,
  embedded: Embedded,
  whenMissing: 'embedded' | 'fallback' | 'error',
): OpenDefinitions {
  const answer = async (caller: Caller, need: Need): Promise<DefinitionsResult> => {
    const view = await source.view(caller, need);
    if (view.kind === 'definitions') return { ok: true, isEmbeddedFallback: false, ...view };
    if (whenMissing !== 'error' && view.isReachable) {
      const isEmbeddedFallback = whenMissing === 'fallback';
      return { ok: true, ...embedded, isEmbeddedFallback, isStale: false };
    }
    return { ok: false, retryAfterSeconds: Math.ceil(view.retryAfterMs / 1000) };
  };
  return {
    current: (caller) => answer(caller, 'show'),
    refreshed: (caller) => answer(caller, 'refresh'),
    async info(caller) {
      const view = await source.view(caller, 'use');
      return (view.kind === 'definitions' ? view.definitions : embedded.definitions).info;
    },
    start: () => void source.view(undefined, 'use'),
    close: () => source.close(),
  };
}
