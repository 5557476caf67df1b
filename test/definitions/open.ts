import { onTestFinished } from 'vitest';
import type { ObjectInfoSource } from '../../src/config/upstream.ts';
import { type OpenDefinitions, openDefinitions } from '../../src/definitions/open-definitions.ts';
import type { FetchLimits } from '../../src/definitions/fetch-text.ts';
import { silentLogger } from '../../src/observability/log.ts';
import type { DefinitionsResult } from '../../src/definitions/definitions.ts';
import type { ObjectInfo } from '../../src/protocol/v1.ts';
import { type Hook, type Origin, classes, openOrigin } from './origin.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

export const SECOND = 1000;
export const HOUR = 3600 * SECOND;

/** Definitions with a clock that only moves when told to. */
export type Opened = OpenDefinitions & { readonly clock: { now: number } };

export type OpenOptions = {
  readonly source?: ObjectInfoSource;
  /** Of the service that runs the jobs; left out: the embedded engine. */
  readonly upstreamUrl?: string | undefined;
  readonly key?: string;
  readonly copiesDir?: string;
  readonly limits?: Partial<FetchLimits>;
  readonly clock?: { now: number };
};

export async function open(options: OpenOptions = {}): Promise<Opened> {
  const { source = { kind: 'auto' }, upstreamUrl, limits = {} } = options;
  const clock = options.clock ?? { now: Date.now() };
  const opened = openDefinitions({
    source,
    upstream:
      upstreamUrl === undefined
        ? { kind: 'embedded' }
        : { kind: 'remote', url: upstreamUrl, key: options.key },
    embedded: classes('Embedded') as ObjectInfo,
    cacheDir: options.copiesDir ?? (await tempFolder('definitions')),
    log: silentLogger(),
    now: () => clock.now,
    limits,
  });
  onTestFinished(() => opened.close());
  return Object.assign(opened, { clock });
}

export async function origin(answer: Hook, port = 0): Promise<Origin> {
  const opened = await openOrigin(answer, port);
  onTestFinished(() => opened.close());
  return opened;
}

/** Class names and marks of an answer, short enough for tables. */
export function outline(known: DefinitionsResult): string {
  if (!known.ok) return `nothing, again after ${known.retryAfterSeconds} s`;
  const { definitions, isStale, isEmbeddedFallback } = known;
  const names = [...definitions.members.keys()].join('+');
  return [names, isStale && 'stale', isEmbeddedFallback && 'stand-in'].filter(Boolean).join(' ');
}

/** Waits until something that goes on in the background is seen. */
export async function eventually<T>(look: () => Promise<T> | T, wanted: T): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if ((await look()) === wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it stays ${String(await look())}`);
}
