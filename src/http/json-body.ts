import type { IncomingMessage, ServerResponse } from 'node:http';
import { nextTurn } from '../lib/turns.ts';
import { tooLargeText } from '../spool.ts';
import { type Json, isJsonObject, jsonFault } from '../wire/json.ts';
import { BodyBytes } from './body-bytes.ts';
import { type BodyMemory, type Hold, bodyMemoryBytes, createBodyMemory } from './body-memory.ts';
import { NotText, buildJson } from './json-parts.ts';
import { type JsonLimits, type Scan, type ScanFault, tooManyNodes } from './json-cuts.ts';
import { JsonScanner } from './json-scan.ts';

/** A body that was not taken. After a 413 or 503 its rest is not read: answer with `Connection: close`. */
export type BodyRefusal = {
  readonly ok: false;
  readonly status: 400 | 413 | 415 | 503;
  readonly message: string;
  /** It is no JSON; all other refusals leave open what it is. */
  readonly isSyntax: boolean;
  readonly retryAfterSeconds?: number;
};

type JsonBody =
  | { readonly ok: true; readonly value: Json; readonly text: string | undefined }
  | BodyRefusal;

/** A request with the answer it will get, with or without a framework around them. */
export type Exchange = { readonly req: IncomingMessage; readonly res: ServerResponse };

type ReadOptions = {
  /** Less than the reader's own limit. */
  readonly maxBytes?: number;
  /** Member of the outermost object whose members are nodes. */
  readonly graphMember?: string;
  /** The text is wanted beside the value; only for small bodies. */
  readonly keepsText?: true;
};

/** Reads bodies as JSON, whatever their content type says. */
export type BodyReader = {
  read(exchange: Exchange, options?: ReadOptions): Promise<JsonBody>;
  /** Bytes reserved for bodies that are being worked on. */
  readonly reservedBytes: () => number;
};

/** Deepest nesting of a body. */
const MAX_JSON_DEPTH = 200;

const DEFAULT_LIMITS = { maxValues: 500_000, maxNodes: 10_000 } as const;
/** Bytes counted between two looks at the event loop. */
const BYTES_A_TURN = 1024 * 1024;
const RETRY_AFTER_S = 5;
/** First reservation of a body that announces no length. */
const FIRST_ROOM_BYTES = 64 * 1024;
/** Fewer values weigh less than the text they come in. */
const MANY_VALUES = 10_000;
/** Memory of a value beside its text, in the unit of bodies. */
const BYTES_A_VALUE = 16;

export function createBodyReader(deps: {
  readonly maxBytes: number;
  readonly limits?: Omit<JsonLimits, 'maxDepth'>;
  readonly memory?: BodyMemory;
}): BodyReader {
  const { memory = createBodyMemory({ limitBytes: bodyMemoryBytes() }) } = deps;
  const limits = { ...DEFAULT_LIMITS, ...deps.limits, maxDepth: MAX_JSON_DEPTH };
  const mostBytes = Math.min(deps.maxBytes, memory.largestBody);
  return {
    reservedBytes: memory.reservedBytes,
    async read(exchange, options = {}) {
      const maxBytes = Math.min(mostBytes, options.maxBytes ?? mostBytes);
      const refusal = refuseHead(exchange.req, maxBytes);
      if (refusal) return refusal;
      const room = createRoom(exchange, memory);
      const scanner = new JsonScanner(limits, options.graphMember);
      const bytes = new BodyBytes();
      const received = await receive(exchange.req, { scanner, bytes, room, maxBytes });
      if ('ok' in received) return received;
      const { values } = received;
      if (values > MANY_VALUES && !(await room.grow(values * BYTES_A_VALUE))) return noRoom();
      return await build(received, bytes, { limits, ...options });
    },
  };
}

/**
 * A text that has been received as a whole, as JSON and within the usual limits; `undefined`: it is
 * none, or holds too much. Built in turns of the event loop.
 */
export async function jsonWithin(text: Buffer): Promise<Json | undefined> {
  const scanner = new JsonScanner({ ...DEFAULT_LIMITS, maxDepth: MAX_JSON_DEPTH });
  for (let at = 0; at < text.length; at += BYTES_A_TURN) {
    if (at > 0) await nextTurn();
    if (scanner.push(text.subarray(at, at + BYTES_A_TURN))) return undefined;
  }
  const scan = scanner.end();
  return 'kind' in scan ? undefined : await buildJson(scan, text.subarray.bind(text));
}

type Room = {
  /** Makes room for so many bytes more; `false`: there is none. */
  grow(bytes: number): Promise<boolean>;
};

/** Memory a body takes up until it is answered. */
function createRoom({ res }: Exchange, memory: BodyMemory): Room {
  const holds: Hold[] = [];
  const release = (): void => holds.splice(0).forEach((hold) => hold.release());
  res.once('close', release);
  return {
    async grow(bytes) {
      const hold = await memory.reserve(bytes);
      if (hold === undefined) return false;
      holds.push(hold);
      if (res.closed) release();
      return true;
    },
  };
}

function refuseHead({ headers }: IncomingMessage, maxBytes: number): BodyRefusal | undefined {
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity') return refused(415, `Content-Encoding ${encoding} is not taken.`);
  return Number(headers['content-length']) > maxBytes ? tooLarge(maxBytes) : undefined;
}

type Receiving = {
  readonly scanner: JsonScanner;
  readonly bytes: BodyBytes;
  readonly room: Room;
  readonly maxBytes: number;
};

/** Counts while the bytes come in. Of a text that is no JSON the rest is read and dropped. */
async function receive(
  request: IncomingMessage,
  { scanner, bytes, room, maxBytes }: Receiving,
): Promise<Scan | BodyRefusal> {
  let roomBytes = Number(request.headers['content-length'] ?? FIRST_ROOM_BYTES);
  if (!(await room.grow(roomBytes))) return noRoom();
  if (request.destroyed) return refused(400, 'The body was cut off.');
  let size = 0;
  const take = async (chunk: Buffer): Promise<BodyRefusal | undefined> => {
    size += chunk.length;
    if (size > maxBytes) return tooLarge(maxBytes);
    const fault = scanner.push(chunk);
    if (fault?.kind === 'too much') return refused(413, fault.message);
    if (fault) {
      bytes.clear();
      return undefined;
    }
    bytes.add(chunk);
    if (size <= roomBytes) return undefined;
    const more = Math.max(roomBytes, size - roomBytes);
    roomBytes += more;
    return (await room.grow(more)) ? undefined : noRoom();
  };
  const refusal = await eachChunk(request, take);
  if (refusal) return refusal;
  const scan = scanner.end();
  return 'kind' in scan ? refusedScan(scan) : scan;
}

/** Not `for await`: leaving that loop early destroys the socket, and the answer with it. */
function eachChunk(
  request: IncomingMessage,
  take: (chunk: Buffer) => Promise<BodyRefusal | undefined>,
): Promise<BodyRefusal | undefined> {
  return new Promise((resolve, reject) => {
    const stop = (refusal: BodyRefusal | undefined): void => {
      request.off('data', onData).off('end', onEnd).off('error', cutOff).off('close', cutOff);
      resolve(refusal);
    };
    const cutOff = (): void => stop(refused(400, 'The body was cut off.'));
    const onEnd = (): void => stop(undefined);
    function onData(chunk: Buffer): void {
      request.pause();
      // Paused, it neither ends nor gives more.
      take(chunk).then((refusal) => {
        if (refusal) stop(refusal);
        else request.resume();
      }, reject);
    }
    request.on('data', onData).once('end', onEnd).once('error', cutOff).once('close', cutOff);
  });
}

async function build(
  scan: Scan,
  bytes: BodyBytes,
  { limits, graphMember, keepsText }: ReadOptions & { readonly limits: JsonLimits },
): Promise<JsonBody> {
  const text = keepsText && bytes.take(0, scan.bytes);
  try {
    const value = await buildJson(scan, text ? text.subarray.bind(text) : bytes.take.bind(bytes));
    // The name may have been written with escapes, and was none to the scanner.
    const graph = graphMember !== undefined && isJsonObject(value) ? value[graphMember] : undefined;
    const nodes = isJsonObject(graph) ? Object.keys(graph).length : 0;
    if (nodes > limits.maxNodes) return refused(413, tooManyNodes(limits));
    return { ok: true, value, text: text?.toString('utf8') };
  } catch (error) {
    if (error instanceof NotText) return refused(400, 'The body is not UTF-8 text.');
    return refusedScan({ kind: 'syntax', message: jsonFault(error) });
  }
}

function refusedScan({ kind, message }: ScanFault): BodyRefusal {
  if (kind === 'too much') return refused(413, message);
  return { ...refused(400, `The body is not JSON: ${message}`), isSyntax: true };
}

function refused(status: BodyRefusal['status'], message: string): BodyRefusal {
  return { ok: false, status, message, isSyntax: false };
}

function tooLarge(maxBytes: number): BodyRefusal {
  return refused(413, tooLargeText(maxBytes));
}

function noRoom(): BodyRefusal {
  const message = 'The bodies of other calls take up the memory of the server: try again later.';
  return { ...refused(503, message), retryAfterSeconds: RETRY_AFTER_S };
}
