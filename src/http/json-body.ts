import type { IncomingMessage, ServerResponse } from 'node:http';
import { TextDecoder } from 'node:util';
import { LIMITS } from '../config/limits.ts';
import { runInSteps, yieldToEventLoop } from '../lib/event-loop.ts';
import { tooLargeText } from '../lib/spool.ts';
import {
  type Json,
  type JsonLimits,
  JsonReader,
  MAX_JSON_DEPTH,
  jsonFault,
} from '../protocol/json.ts';
import {
  type ArrivingBody,
  BodyMemory,
  type Release,
  bodyMemoryBytes,
} from './json/body-memory.ts';
import {
  type BodyRefusal,
  isUnpackError,
  refusedBody,
  refusedByHeaders,
  stopUnpacking,
  unpackedBody,
} from './unpacked-body.ts';
import type { Logger } from '../observability/log.ts';

type JsonBody = { readonly ok: true; readonly value: Json } | BodyRefusal;

/** A request and its response, with or without a framework. */
export type HttpExchange = { readonly req: IncomingMessage; readonly res: ServerResponse };

export type ReadOptions = {
  /** A lower limit than that of the reader. */
  readonly maxBytes?: number;
  /** The member of the outermost object whose members are nodes. */
  readonly graphMember?: string;
  /** Set to read NaN and Infinity as null. */
  readonly nonFinite?: 'null';
};

/** Reads bodies as JSON, whatever their content type. Only the charset of the type counts. */
export interface BodyReader {
  read(httpExchange: HttpExchange, options?: ReadOptions): Promise<JsonBody>;
}

const DEFAULT_LIMITS = { maxValues: LIMITS.jsonValues, maxNodes: LIMITS.graphNodes } as const;
/** The number of characters that are read before other work gets its turn. */
const CHARS_PER_STEP = 1024 * 1024;
const RETRY_AFTER_S = 5;
/** The first reservation for a body. */
const FIRST_RESERVATION_BYTES = 64 * 1024;
/** Each further one is as many times the one before, at most for the announced rest. */
const RESERVATION_GROWTH = 8;
/** Fewer values need less memory than their text. */
const MANY_VALUES = 10_000;
/** The memory of a value beside its text, in the unit of bodies. */
const MEMORY_PER_VALUE = 16;

/** @internal */
export function createBodyReader(readerOptions: {
  readonly maxBytes: number;
  readonly limits?: Omit<JsonLimits, 'maxDepth'>;
  readonly memory?: BodyMemory;
}): BodyReader {
  const { memory = new BodyMemory({ limitBytes: bodyMemoryBytes() }) } = readerOptions;
  const limits = { ...DEFAULT_LIMITS, ...readerOptions.limits, maxDepth: MAX_JSON_DEPTH };
  const readerMaxBytes = Math.min(readerOptions.maxBytes, memory.largestBody);
  return {
    async read(httpExchange, options: ReadOptions = {}) {
      const maxBytes = Math.min(readerMaxBytes, options.maxBytes ?? readerMaxBytes);
      const refused = refusedByHeaders(httpExchange.req, maxBytes);
      if (refused) return refused;
      const reserveMore = reserverFor(httpExchange, memory);
      const reader = new JsonReader({ limits, ...options });
      const announced = Number(httpExchange.req.headers['content-length'] ?? 0);
      const body: ArrivingBody = { rest: announced };
      const reserve = (bytes: number): Promise<boolean> => reserveMore(bytes, body);
      const receiving = { reader, reserveMore: reserve, announced, maxBytes };
      const refusal = await receive(httpExchange.req, receiving).finally(() => memory.ended(body));
      if (refusal) return refusal;
      const { values } = reader;
      if (values > MANY_VALUES && !(await reserveMore(values * MEMORY_PER_VALUE)))
        return memoryFull();
      try {
        return { ok: true, value: await runInSteps(reader.end()) };
      } catch (error) {
        return { ...refusedBody(400, `The body is not JSON: ${jsonFault(error)}`), isSyntax: true };
      }
    },
  };
}

/**
 * Parses a complete text as JSON within the usual limits. `undefined` when it holds too much.
 * Throws SyntaxError. Other work runs in between.
 */
export async function parseWithinLimits(bytes: Buffer): Promise<Json | undefined> {
  const reader = new JsonReader({ limits: { ...DEFAULT_LIMITS, maxDepth: MAX_JSON_DEPTH } });
  const text = decoderFor().decode(bytes);
  for (let at = 0; at < text.length; at += CHARS_PER_STEP) {
    if (at > 0) await yieldToEventLoop();
    if (reader.push(text.slice(at, at + CHARS_PER_STEP)) !== undefined) return undefined;
  }
  return await runInSteps(reader.end());
}

/** Reserves this many bytes more. `false` when there is no memory. */
type ReserveMore = (bytes: number, body?: ArrivingBody) => Promise<boolean>;

/** Reserves the memory of a body until its call is answered. */
function reserverFor({ res }: HttpExchange, memory: BodyMemory): ReserveMore {
  const releases: Release[] = [];
  const release = (): void => releases.splice(0).forEach((one) => one());
  res.once('close', release);
  return async (bytes, body) => {
    const reserved = await memory.reserve(bytes, body);
    if (reserved === undefined) return false;
    releases.push(reserved);
    if (res.destroyed) release();
    return true;
  };
}

type Receiving = {
  readonly reader: JsonReader;
  readonly reserveMore: ReserveMore;
  readonly announced: number;
  readonly maxBytes: number;
};

/** Counts the body while its bytes arrive. Returns its refusal; `undefined`: it is accepted. */
async function receive(
  request: IncomingMessage,
  { reader, reserveMore, announced, maxBytes }: Receiving,
): Promise<BodyRefusal | undefined> {
  // One byte more than small bodies, which have a reserve of their own.
  let reserved = Math.min(announced || FIRST_RESERVATION_BYTES, FIRST_RESERVATION_BYTES + 1);
  if (!(await reserveMore(reserved))) return memoryFull();
  if (request.destroyed) return refusedBody(400, CUT_OFF);
  let size = 0;
  const takeText = createTextReader(reader, decoderFor(request.headers['content-type']));
  const body = unpackedBody(request);
  try {
    // The body is not destroyed at an early end: the answer needs its socket.
    const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) {
      size += chunk.length;
      if (size > maxBytes) return refusedBody(413, tooLargeText(maxBytes));
      const refusal = takeText(chunk);
      if (refusal) return refusal;
      if (size <= reserved) continue;
      const more = growthOf({ size, reserved, announced });
      reserved += more;
      if (!(await reserveMore(more))) return memoryFull();
    }
  } catch (error) {
    if (!body.destroyed) throw error;
    return refusedBody(400, isUnpackError(error) ? NOT_PACKED : CUT_OFF);
  } finally {
    stopUnpacking(body, request);
  }
  return takeText(undefined);
}

/** Returns the size of the next reservation for a body that has outgrown those before it. */
function growthOf({
  size,
  reserved,
  announced,
}: Readonly<Record<'size' | 'reserved' | 'announced', number>>): number {
  const rest = Math.min(announced - reserved, RESERVATION_GROWTH * reserved);
  return Math.max(size - reserved, rest > 0 ? rest : reserved);
}

/** Returns a function that parses the next bytes, or the end. It returns their refusal, if there is one. */
function createTextReader(reader: JsonReader, decoder: TextDecoder) {
  return (bytes: Buffer | undefined): BodyRefusal | undefined => {
    const text = decoded(decoder, bytes);
    if (text === undefined) {
      return refusedBody(400, `The body is not ${decoder.encoding.toUpperCase()} text.`);
    }
    const fault = reader.push(text);
    return fault === undefined ? undefined : refusedBody(413, fault);
  };
}

/** Decodes the next bytes, or the end. `undefined` when they are no text. */
function decoded(decoder: TextDecoder, bytes: Buffer | undefined): string | undefined {
  try {
    return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
  } catch {
    return undefined;
  }
}

const CUT_OFF = 'The body was cut off.';
const NOT_PACKED = 'The body cannot be unpacked as its Content-Encoding says.';

function memoryFull(): BodyRefusal {
  const message = 'The bodies of other calls take up the memory of the server: try again later.';
  return { ...refusedBody(503, message), retryAfterSeconds: RETRY_AFTER_S };
}

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
  const memory = new BodyMemory({
    limitBytes: bodyMemoryBytes(),
    queuedBytes: () => queued.bytes(),
  });
  const { maxUploadBytes, maxJsonValues: maxValues, maxNodes } = config;
  if (memory.largestBody < maxUploadBytes) {
    const { largestBody } = memory;
    log.warn({ event: 'limits.small_memory', maxUploadBytes, largestBody }, SMALL_MEMORY);
  }
  return createBodyReader({ maxBytes: maxUploadBytes, limits: { maxValues, maxNodes }, memory });
}

const SMALL_MEMORY =
  'this process has too little memory for a JSON body of --max-upload-size: it refuses bodies larger than largestBody';

/**
 * Returns a decoder for the charset that a content type names. A body without a known charset is
 * UTF-8. v1 obeys the charset, and some libraries (Apache HttpClient, Spring) write ISO-8859-1 by
 * default. The decoder throws a TypeError for bytes that are no text.
 */
function decoderFor(contentType = ''): TextDecoder {
  const label = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    // Under the label ASCII too, JSON is UTF-8.
    return new TextDecoder(/^(us-)?ascii$/i.test(label) ? 'utf-8' : label, { fatal: true });
  } catch {
    return new TextDecoder('utf-8', { fatal: true });
  }
}
