import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import { tooLargeText } from '../lib/spool.ts';
import { type Json, isJsonObject, jsonFault } from '../protocol/json.ts';
import { BodyBytes } from './json/body-bytes.ts';
import {
  type BodyMemory,
  type MemoryReservation,
  bodyMemoryBytes,
  createBodyMemory,
} from './json/body-memory.ts';
import { NotUtf8, buildJson } from './json/builder.ts';
import { transcoderFor } from './json/charset.ts';
import { type JsonLimits, type Scan, type ScanFault, tooManyNodes } from './json/limits.ts';
import { JsonScanner } from './json/scanner.ts';
import {
  type BodyRefusal,
  isUnpackError,
  refusedBody as refused,
  refusedByHeaders,
  stopUnpacking,
  unpackedBody,
} from './unpacked-body.ts';
import type { Logger } from '../observability/log.ts';

type JsonBody =
  | { readonly ok: true; readonly value: Json; readonly text: string | undefined }
  | BodyRefusal;

/** A request and its response, with or without a framework. */
export type HttpExchange = { readonly req: IncomingMessage; readonly res: ServerResponse };

type ReadOptions = {
  /** A lower limit than that of the reader. */
  readonly maxBytes?: number;
  /** The member of the outermost object whose members are nodes. */
  readonly graphMember?: string;
  /** Set when the text is needed beside the value. Only for small bodies. */
  readonly withText?: true;
};

/** Reads bodies as JSON, whatever their content type. Only the charset of the type counts. */
export type BodyReader = ReturnType<typeof createBodyReader>;

/** The deepest nesting of a body. */
const MAX_JSON_DEPTH = 200;

const DEFAULT_LIMITS = { maxValues: 500_000, maxNodes: 10_000 } as const;
/** The number of bytes that are scanned before other work gets its turn. */
const BYTES_PER_STEP = 1024 * 1024;
const RETRY_AFTER_S = 5;
/** The first reservation for a body without an announced length. */
const FIRST_RESERVATION_BYTES = 64 * 1024;
/** Fewer values need less memory than their text. */
const MANY_VALUES = 10_000;
/** The memory of a value beside its text, in the unit of bodies. */
const MEMORY_PER_VALUE = 16;

/** @internal */
export function createBodyReader(readerOptions: {
  readonly maxBytes: number;
  readonly limits?: Omit<JsonLimits, 'maxDepth'>;
  readonly memory?: BodyMemory;
}) {
  const { memory = createBodyMemory({ limitBytes: bodyMemoryBytes() }) } = readerOptions;
  const limits = { ...DEFAULT_LIMITS, ...readerOptions.limits, maxDepth: MAX_JSON_DEPTH };
  const readerMaxBytes = Math.min(readerOptions.maxBytes, memory.largestBody);
  return {
    /** The bytes that are reserved for bodies in progress. */
    reservedBytes: memory.reservedBytes,
    async read(httpExchange: HttpExchange, options: ReadOptions = {}): Promise<JsonBody> {
      const maxBytes = Math.min(readerMaxBytes, options.maxBytes ?? readerMaxBytes);
      const refusal = refusedByHeaders(httpExchange.req, maxBytes);
      if (refusal) return refusal;
      const reserveMore = reserverFor(httpExchange, memory);
      const scanner = new JsonScanner(limits, options.graphMember);
      const bytes = new BodyBytes(announcedBytes(httpExchange.req));
      const received = await receive(httpExchange.req, { scanner, bytes, reserveMore, maxBytes });
      if ('ok' in received) return received;
      const { values } = received;
      if (values > MANY_VALUES && !(await reserveMore(values * MEMORY_PER_VALUE)))
        return memoryFull();
      return await build(received, bytes, { limits, ...options });
    },
  };
}

/**
 * Parses a complete text as JSON within the usual limits. `undefined` when it is not JSON or holds
 * too much. Other work runs in between.
 */
export async function parseWithinLimits(text: Buffer): Promise<Json | undefined> {
  const scanner = new JsonScanner({ ...DEFAULT_LIMITS, maxDepth: MAX_JSON_DEPTH });
  for (let at = 0; at < text.length; at += BYTES_PER_STEP) {
    if (at > 0) await yieldToEventLoop();
    if (scanner.push(text.subarray(at, at + BYTES_PER_STEP))) return undefined;
  }
  const scan = scanner.end();
  return 'kind' in scan ? undefined : await buildJson(scan, text.subarray.bind(text));
}

/** Reserves this many bytes more. `false` when there is no memory. */
type ReserveMore = (bytes: number) => Promise<boolean>;

/** Reserves the memory of a body until its call is answered. */
function reserverFor({ res }: HttpExchange, memory: BodyMemory): ReserveMore {
  const reservations: MemoryReservation[] = [];
  const release = (): void => reservations.splice(0).forEach((one) => one.release());
  res.once('close', release);
  return async (bytes) => {
    const reservation = await memory.reserve(bytes);
    if (reservation === undefined) return false;
    reservations.push(reservation);
    if (res.destroyed) release();
    return true;
  };
}

function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? FIRST_RESERVATION_BYTES);
}

type Receiving = {
  readonly scanner: JsonScanner;
  readonly bytes: BodyBytes;
  readonly reserveMore: ReserveMore;
  readonly maxBytes: number;
};

/** Counts the body while its bytes arrive. After bad JSON the rest is read and dropped. */
async function receive(
  request: IncomingMessage,
  { scanner, bytes, reserveMore, maxBytes }: Receiving,
): Promise<Scan | BodyRefusal> {
  let reservedForBody = announcedBytes(request);
  if (!(await reserveMore(reservedForBody))) return memoryFull();
  if (request.destroyed) return refused(400, CUT_OFF);
  let size = 0;
  const transcode = transcoderFor(request.headers['content-type']);
  const takeChunk = (received: Buffer): Taken | Promise<Taken> => {
    const chunk = transcode?.(received) ?? received;
    size += chunk.length;
    if (size > maxBytes) return refused(413, tooLargeText(maxBytes));
    const fault = scanner.push(chunk);
    if (fault?.kind === 'too much') return refused(413, fault.message);
    if (fault) {
      bytes.clear();
      return undefined;
    }
    bytes.add(chunk);
    if (size <= reservedForBody) return undefined;
    const more = Math.max(reservedForBody, size - reservedForBody);
    reservedForBody += more;
    return reserveMore(more).then((isReserved) => (isReserved ? undefined : memoryFull()));
  };
  const body = unpackedBody(request);
  const refusal = await eachChunk(body, takeChunk);
  stopUnpacking(body, request);
  if (refusal) return refusal;
  const scan = scanner.end();
  return 'kind' in scan ? refusedScan(scan) : scan;
}

const CUT_OFF = 'The body was cut off.';
const NOT_PACKED = 'The body cannot be unpacked as its Content-Encoding says.';

/** The refusal of a body; `undefined`: it is accepted. */
type Taken = BodyRefusal | undefined;

/**
 * Reads a body chunk by chunk. A `for await` loop that ends early would destroy the socket, and the
 * answer with it.
 */
function eachChunk(
  body: Readable,
  takeChunk: (chunk: Buffer) => Taken | Promise<Taken>,
): Promise<Taken> {
  return new Promise((resolve, reject) => {
    const stop = (refusal: BodyRefusal | undefined): void => {
      body.off('data', onData).off('end', onEnd).off('error', onError).off('close', onError);
      resolve(refusal);
    };
    const onError = (cause?: unknown): void =>
      stop(refused(400, isUnpackError(cause) ? NOT_PACKED : CUT_OFF));
    const onEnd = (): void => stop(undefined);
    function onData(chunk: Buffer): void {
      const taken = takeChunk(chunk);
      if (!(taken instanceof Promise)) return taken && stop(taken);
      // A paused stream neither ends nor gives more data.
      body.pause();
      taken.then((refusal) => {
        if (refusal) stop(refusal);
        else body.resume();
      }, reject);
    }
    body.on('data', onData).once('end', onEnd).once('error', onError).once('close', onError);
  });
}

async function build(
  scan: Scan,
  bytes: BodyBytes,
  { limits, graphMember, withText }: ReadOptions & { readonly limits: JsonLimits },
): Promise<JsonBody> {
  const text = withText && bytes.take(0, scan.bytes);
  try {
    const value = await buildJson(scan, text ? text.subarray.bind(text) : bytes.take.bind(bytes));
    // The scanner does not see a member name that is written with escapes.
    const graph = graphMember !== undefined && isJsonObject(value) ? value[graphMember] : undefined;
    const nodes = isJsonObject(graph) ? Object.keys(graph).length : 0;
    if (nodes > limits.maxNodes) return refused(413, tooManyNodes(limits));
    return { ok: true, value, text: text?.toString('utf8') };
  } catch (error) {
    if (error instanceof NotUtf8) return refused(400, 'The body is not UTF-8 text.');
    return refusedScan({ kind: 'syntax', message: jsonFault(error) });
  }
}

function refusedScan({ kind, message }: ScanFault): BodyRefusal {
  if (kind === 'too much') return refused(413, message);
  return { ...refused(400, `The body is not JSON: ${message}`), isSyntax: true };
}

function memoryFull(): BodyRefusal {
  const message = 'The bodies of other calls take up the memory of the server: try again later.';
  return { ...refused(503, message), retryAfterSeconds: RETRY_AFTER_S };
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
