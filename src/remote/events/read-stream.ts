import type { Readable } from 'node:stream';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import type { JobEvent } from '../../protocol/job-api.ts';
import type { Account } from '../calls/accounts.ts';
import { type RemoteClient, isAccountWide } from '../calls/calls.ts';
import { retryAfterMs, readRefusal } from '../calls/errors.ts';
import type { OpenAnswer } from '../calls/exchange.ts';
import { type Secrets, redactEvent } from '../calls/redact.ts';
import { type Json, isJsonObject, parseJson } from '../../protocol/json.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { RemoteLimits } from '../limits.ts';
import {
  readJob,
  readNodeEvent,
  readNodeText,
  readOutput,
  readPreview,
  readProgress,
  readStatus,
} from '../schemas.ts';

/** The result of one attempt to read a stream. */
export type StreamAttempt =
  | { readonly kind: 'read'; readonly end: StreamEnd }
  /** The upstream has no more streams. Try again after `forMs`. */
  | { readonly kind: 'no capacity'; readonly forMs: number }
  /** There is no stream this time. The next poll shows the reason. */
  | { readonly kind: 'none' };

type StreamRequest = {
  readonly account: Account;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: JobEvent) => void;
  /** Texts that are removed from every event. */
  readonly secrets: Secrets;
};

/** Opens one event stream and reads it. A refusal updates the capabilities. */
export async function readStreamOnce(
  client: RemoteClient,
  request: StreamRequest,
): Promise<StreamAttempt> {
  const { calls, limits, log } = client;
  const { account, path, signal } = request;
  const headers = { accept: 'text/event-stream', 'cache-control': 'no-cache' };
  const answer = await calls.open(account, { method: 'GET', path, headers, signal });
  if (!answer.ok) return { kind: 'none' };
  const isStream = /^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '');
  if (answer.status === 200 && isStream) {
    const end = await readStream(answer.body, request, limits);
    if (end === 'too large') {
      const limit = limits.maxEventChars;
      const fields = { event: 'upstream.event_too_large', path, limit };
      log.warn(fields, 'cut off an event stream: one event is too large');
    }
    return { kind: 'read', end };
  }
  return readStreamRefusal(client, account, answer);
}

/** Reads a refusal and updates the capabilities. */
async function readStreamRefusal(
  { calls, capabilities, limits, clock }: RemoteClient,
  account: Account,
  answer: OpenAnswer,
): Promise<StreamAttempt> {
  const { status, headers, body } = answer;
  if (status === 429) {
    const error = calls.recordRefusal(account, await readRefusal(answer));
    if (isAccountWide(error)) return { kind: 'none' };
    const forMs = retryAfterMs(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS, limits);
    return { kind: 'no capacity', forMs };
  }
  body.destroy();
  const isJson = /\bjson\b/i.test(headers['content-type'] ?? '');
  // A 404 in the form of the contract is about the job. Any other 404 means that the server has no
  // such route.
  const hasNoStreams = status === 501 || status === 405 || (status === 404 && !isJson);
  if (hasNoStreams) capabilities.pollOnlyUntilMs = clock.now() + limits.pollOnlyMs;
  else if (status < 400) capabilities.pollOnlyUntilMs = clock.now() + limits.uncertainStreamMs;
  return { kind: 'none' };
}

const DEFAULT_RETRY_SECONDS = 5;

/** Why a stream ended. This says nothing about the job. */
type StreamEnd = 'ended' | 'error event' | 'idle' | 'broken' | 'too large';

/**
 * The maximum number of lines without an event, comments included: each data line costs much more
 * than its bytes.
 */
const MAX_LINES = 100_000;

/** Reads one event stream to its end. To abort it, destroy the body. */
function readStream(
  body: Readable,
  request: StreamRequest,
  limits: RemoteLimits,
): Promise<StreamEnd> {
  return new Promise((resolve) => {
    const reader = new StreamReader(body, request, limits);
    body.on('data', (chunk: Buffer) => reader.receive(chunk));
    body.once('end', () => reader.complete());
    body.once('close', () => resolve(reader.close()));
  });
}

class StreamReader {
  readonly #body: Readable;
  readonly #request: StreamRequest;
  readonly #limits: RemoteLimits;
  readonly #parser: EventSourceParser;
  readonly #idle: NodeJS.Timeout;
  #endTimer: NodeJS.Timeout | undefined;
  /** Drops a byte order mark. */
  readonly #decoder = new TextDecoder();
  #end: StreamEnd | undefined;
  #text = '';
  #lines = 0;

  constructor(body: Readable, request: StreamRequest, limits: RemoteLimits) {
    this.#body = body;
    this.#request = request;
    this.#limits = limits;
    this.#idle = setTimeout(() => this.#stop('idle'), limits.streamIdleTimeoutMs);
    this.#parser = createParser({
      maxBufferSize: limits.maxEventChars,
      onComment: () => void this.#idle.refresh(),
      onError: (error) => error.type === 'max-buffer-size-exceeded' && this.#stop('too large'),
      onEvent: ({ event = 'message', data }) => this.#receiveEvent(event, data),
    });
  }

  receive(chunk: Buffer): void {
    this.#text = this.#decoder.decode(chunk, { stream: true });
    if (this.#end === undefined) this.#parser.feed(this.#text);
    if ((this.#lines += linesIn(this.#text)) > MAX_LINES) this.#stop('too large');
  }

  /** Called when the whole stream was read. */
  complete(): void {
    // The parser waits for the next byte to decide if a last CR is part of a CRLF.
    if (this.#end === undefined && this.#text.endsWith('\r')) this.#parser.feed('\n');
    this.#end ??= 'ended';
  }

  close(): StreamEnd {
    clearTimeout(this.#idle);
    clearTimeout(this.#endTimer);
    return (this.#end ??= 'broken');
  }

  #receiveEvent(name: string, data: string): void {
    this.#idle.refresh();
    this.#lines = 0;
    if (this.#end !== undefined) return;
    // The service ends the stream, not the job.
    if (name === 'error') return this.#stop('error event');
    const event = readEvent(name, data);
    if (!event) return;
    this.#request.onEvent(redactEvent(event, this.#request.secrets));
    if (event.event !== 'status' || !IS_TERMINAL[event.data.status]) return;
    // One server writes the outputs after the terminal status.
    this.#endTimer ??= setTimeout(() => this.#stop('ended'), this.#limits.afterTerminalMs);
  }

  #stop(reason: StreamEnd): void {
    this.#end ??= reason;
    this.#body.destroy();
  }
}

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** For each event, the function that reads its data. */
const DATA_READERS = {
  status: (text) => readStatusWithJob(parseJson(text)),
  progress: (text) => readProgress(parseJson(text)),
  output: (text) => readOutput(parseJson(text)),
  // Not `parseJson`: in base64 it always finds a text that looks like a long number.
  preview: (text) => readPreview(JSON.parse(text)),
  x_node: (text) => readNodeEvent(parseJson(text)),
  x_text: (text) => readNodeText(JSON.parse(text)),
} as const satisfies { readonly [name in JobEvent['event']]: (text: string) => object | undefined };

/** Reads one event; `undefined` when its name is unknown or its data do not match the contract. */
function readEvent(name: string, text: string): JobEvent | undefined {
  if (!Object.hasOwn(DATA_READERS, name)) return undefined;
  try {
    const data = DATA_READERS[name as JobEvent['event']](text);
    return data && ({ event: name, data } as JobEvent);
  } catch {
    return undefined;
  }
}

/** Reads a status. A terminal one may have the whole job; some services send the status alone. */
function readStatusWithJob(json: Json): object | undefined {
  const read = readStatus(json);
  if (!read || !IS_TERMINAL[read.status]) return read;
  const hasJob = isJsonObject(json) && Array.isArray(json['outputs']);
  const job = hasJob ? readJob(json) : undefined;
  return { ...read, ...(job && { job }) };
}
