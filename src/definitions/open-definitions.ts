import { readFile, stat } from 'node:fs/promises';
import type { ObjectInfoSource, Upstream } from '../config/upstream.ts';
import type { Logger } from '../observability/log.ts';
import type { DefinitionSource, DefinitionsResult } from './definitions.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import { createDefinitionsCache } from './disk-cache.ts';
import { FETCH_LIMITS, type FetchLimits } from './fetch-limits.ts';
import type { FetchOutcome, Validators } from './fetcher.ts';
import { toDefinitions } from './parse-definitions.ts';
import {
  type KeyPolicy,
  type RemoteDefinitions,
  createRemoteDefinitions,
} from './remote-definitions.ts';
import { CachedSource, createVersions } from './cached-source.ts';
import { FILE_TIMING, type Need } from './timing.ts';

/** The node definitions of this server. */
export type OpenDefinitions = DefinitionSource & {
  /** Fetches from the source before the first request, and logs its faults. */
  start(): void;
  close(): Promise<void>;
};

/** The part of the upstream that matters here: its address and its key. */
type DefinitionsUpstream =
  | { readonly kind: 'embedded' }
  | Pick<Upstream & { kind: 'remote' }, 'kind' | 'url' | 'key'>;

type OpenDefinitionsOptions = {
  readonly source: ObjectInfoSource;
  readonly upstream: DefinitionsUpstream;
  /** The definitions of the embedded engine. */
  readonly embedded: ObjectInfo;
  /** Classes that it does not run; programs read names of samplers and models from them. */
  readonly described?: ObjectInfo;
  /** Folder of the cached answers of a remote source. */
  readonly cacheDir: string;
  readonly log: Logger;
  readonly now?: () => number;
  readonly limits?: Partial<FetchLimits>;
};

/** The definitions of the embedded engine, and those with the classes it only describes. */
type Embedded = Required<Pick<DefinitionsResult & { ok: true }, 'definitions' | 'forPrograms'>>;

/** Opens the configured source of node definitions. */
export async function openDefinitions(options: OpenDefinitionsOptions): Promise<OpenDefinitions> {
  const { source, upstream } = options;
  const embedded: Embedded = {
    definitions: toDefinitions(options.embedded),
    forPrograms: toDefinitions({ ...options.described, ...options.embedded }),
  };
  const isRemote = upstream.kind === 'remote';
  if (source.kind === 'file') {
    const file = fileDefinitions(options, source.path);
    const start = () => void file.view(undefined, 'use');
    return { ...serveSource(file, embedded, 'must exist'), start, close: async () => {} };
  }
  if (source.kind === 'url') return openRemote(options, { urls: [source.url], embedded });
  if (source.kind === 'auto' && isRemote) {
    return openRemote(options, { urls: candidateUrls(upstream.url), embedded });
  }
  const library = serveEmbedded(embedded, isRemote);
  return { ...library, start: () => {}, close: async () => {} };
}

async function openRemote(
  options: OpenDefinitionsOptions,
  { urls, embedded }: { urls: readonly string[]; embedded: Embedded },
): Promise<OpenDefinitions> {
  const { source, upstream, cacheDir, log, now = Date.now, limits } = options;
  const { origin } = new URL(urls[0] ?? '');
  // Its HTTP client would slow the start of a server that fetches nothing.
  const { createFetcher } = await import('./fetcher.ts');
  const fetcher = createFetcher(origin, { ...FETCH_LIMITS, ...limits });
  const cache = createDefinitionsCache({ root: cacheDir, log });
  const remote = createRemoteDefinitions({
    fetcher,
    urls,
    keyPolicy: keyPolicyFor(origin, upstream),
    versions: createVersions(),
    cache,
    now,
    log,
  });
  return {
    ...serveSource(remote, embedded, source.kind === 'auto' ? 'may be missing' : 'must exist'),
    start: () => void remote.view(undefined, 'use'),
    async close() {
      await fetcher.close();
      await cache.idle();
    },
  };
}

/** Keys are for the upstream's own origin and for no other. */
function keyPolicyFor(origin: string, upstream: DefinitionsUpstream): KeyPolicy {
  if (upstream.kind === 'embedded' || new URL(upstream.url).origin !== origin) {
    return { kind: 'nobodys' };
  }
  return upstream.key === undefined ? { kind: 'callers' } : { kind: 'fixed', key: upstream.key };
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

function fileDefinitions(options: OpenDefinitionsOptions, path: string): RemoteDefinitions {
  const { log, now = Date.now, limits } = options;
  const source = new CachedSource({
    fetch: (current) => readSourceFile(path, current?.validators, limits?.maxBytes),
    versions: createVersions(),
    timing: FILE_TIMING,
    name: path,
    now,
    log,
  });
  return { view: (_caller, need) => source.view(need) };
}

function serveEmbedded(embedded: Embedded, isEmbeddedFallback: boolean): DefinitionSource {
  const current = async (): Promise<DefinitionsResult> => ({
    ok: true,
    ...embedded,
    isStale: false,
    isEmbeddedFallback,
  });
  return { current, refreshed: current, info: async () => embedded.definitions.info };
}

/** Prompts never wait for this; a request for definitions gets an error when there are none. */
function serveSource(
  source: RemoteDefinitions,
  embedded: Embedded,
  whenMissing: 'must exist' | 'may be missing',
): DefinitionSource {
  const answer = async (caller: Caller, need: Need): Promise<DefinitionsResult> => {
    const view = await source.view(caller, need);
    if (view.kind === 'definitions') return { ok: true, isEmbeddedFallback: false, ...view };
    if (whenMissing === 'may be missing' && view.isReachable) {
      return { ok: true, ...embedded, isEmbeddedFallback: true, isStale: false };
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
  };
}

/**
 * Reads the operator's file, unless it is still the one that was read before.
 * @internal
 */
export async function readSourceFile(
  path: string,
  known: Validators | undefined,
  maxBytes = FETCH_LIMITS.maxBytes,
): Promise<FetchOutcome> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) return { kind: 'failed', reason: 'it is no file' };
    const { size, mtimeMs, ino } = stats;
    const etag = `${size}-${mtimeMs}-${ino}`;
    if (etag === known?.etag) return { kind: 'same' };
    if (size > maxBytes) return { kind: 'failed', reason: `it is larger than ${maxBytes} bytes` };
    return { kind: 'text', bytes: await readFile(path), from: 0, validators: { etag } };
  } catch (error) {
    return { kind: 'failed', reason: (error as Error).message };
  }
}
