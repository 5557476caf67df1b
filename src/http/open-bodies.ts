import type { Logger } from '../observability/log.ts';
import { bodyMemoryBytes, createBodyMemory } from './json/body-memory.ts';
import { type BodyReader, createBodyReader } from './json-body.ts';

/** Creates the reader of all JSON bodies. One memory budget covers them and the queued prompts. */
export function createBodies(
  config: {
    readonly maxUploadBytes: number;
    readonly maxJsonValues: number;
    readonly maxNodes: number;
  },
  queued: { readonly bytes: () => number },
  log: Logger,
): BodyReader {
  const memory = createBodyMemory({ limitBytes: bodyMemoryBytes(), queuedBytes: queued.bytes });
  const { maxUploadBytes, maxJsonValues: maxValues, maxNodes } = config;
  if (memory.largestBody < maxUploadBytes) {
    const { largestBody } = memory;
    log.warn({ event: 'limits.small_memory', maxUploadBytes, largestBody }, SMALL_MEMORY);
  }
  return createBodyReader({ maxBytes: maxUploadBytes, limits: { maxValues, maxNodes }, memory });
}

const SMALL_MEMORY =
  'this process has too little memory for a JSON body of --max-upload-size: it refuses bodies larger than largestBody';
