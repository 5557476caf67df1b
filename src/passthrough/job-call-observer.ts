import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { parseWithinLimits } from '../http/json-body.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { ProxyExchange, CallObserver } from './proxy-exchange.ts';
import { type JsonObject, isJsonObject } from '../protocol/json.ts';
import { isJobsTarget, jobOfTarget } from './target.ts';
import { IS_TERMINAL, type JobStatus } from '../protocol/v2.ts';

/** A successful call about a job: it submitted the job, asked for its end, or got its result. */
export type JobCall =
  | {
      readonly kind: 'submitted';
      readonly caller: Caller;
      /** Returns the request body; `undefined` when it is too long to copy, or not JSON. */
      readonly body: () => Promise<JsonObject | undefined>;
      readonly job: JsonObject;
      readonly response: ServerResponse;
    }
  | { readonly kind: 'cancelled'; readonly caller: Caller; readonly jobId: string }
  | {
      readonly kind: 'fetched';
      readonly caller: Caller;
      readonly jobId: string;
      readonly request: IncomingMessage;
    };

/**
 * The largest copy of a message; the bytes themselves are never delayed. Another Holdover answers a
 * submission with its whole workflow.
 */
const MAX_COPY_BYTES = {
  body: 4 * 1024 * 1024,
  submitted: 5 * 1024 * 1024,
  read: 1024 * 1024,
} as const;
const MAX_ID_CHARS = 300;
/** The request bodies that are copied at a time, of all callers. Further ones are not copied. */
const MAX_OPEN_COPY_BYTES = 16 * MAX_COPY_BYTES.body;

const DECODED = { maxOutputLength: 4 * MAX_COPY_BYTES.body };

const DECODERS: ReadonlyMap<string, (bytes: Buffer) => Promise<Buffer>> = new Map([
  ['identity', async (bytes) => bytes],
  ['gzip', (bytes) => promisify(gunzip)(bytes, DECODED)],
  ['deflate', (bytes) => promisify(inflate)(bytes, DECODED)],
  ['br', (bytes) => promisify(brotliDecompress)(bytes, DECODED)],
]);

/** Observes the calls that submit, cancel and read jobs, and no others. */
export class JobCallObserver {
  readonly #onJobCall: (call: JobCall) => void;
  #openCopyBytes = 0;

  constructor(onJobCall: (call: JobCall) => void) {
    this.#onJobCall = onJobCall;
  }

  /**
   * Returns the observer for a call with this target (path and query); `undefined` when there is
   * nothing to observe.
   */
  observerFor(exchange: ProxyExchange, target: string, caller: Caller): CallObserver | undefined {
    const { method } = exchange.req;
    if (method === 'POST' && isJobsTarget(target)) return this.#submission(exchange, caller);
    const { jobId = '', operation } = jobOfTarget(target) ?? {};
    if (method === 'GET' && operation === '') return this.#read(exchange, caller, jobId);
    if (method !== 'POST' || operation !== '/cancel') return undefined;
    return {
      onAnswer: ({ status }) => {
        if (isSuccess(status)) this.#onJobCall({ kind: 'cancelled', caller, jobId });
      },
    };
  }

  #submission({ req, res }: ProxyExchange, caller: Caller): CallObserver {
    let requestBytes: Promise<Buffer | undefined> = Promise.resolve(undefined);
    return {
      onRequest: () => {
        requestBytes = this.#requestCopy(req);
      },
      onAnswer: ({ status, coding, body }) => {
        if (!isSuccess(status)) return;
        const answer = copyOf(body, MAX_COPY_BYTES.submitted);
        const requestBody = () => jsonOf(requestBytes, req.headers['content-encoding']);
        void jsonOf(answer.whole, coding).then((answered) => {
          const job = answered ?? jobAtStart(answer.start());
          if (!job) return;
          this.#onJobCall({ kind: 'submitted', caller, job, body: requestBody, response: res });
        });
      },
    };
  }

  /** Copies the body of a request, if it is short enough and there is room for the copy. */
  async #requestCopy(req: IncomingMessage): Promise<Buffer | undefined> {
    const maxBytes = Number(req.headers['content-length'] ?? MAX_COPY_BYTES.body);
    const isTooLong = maxBytes > MAX_COPY_BYTES.body;
    if (isTooLong || this.#openCopyBytes + maxBytes > MAX_OPEN_COPY_BYTES) return undefined;
    this.#openCopyBytes += maxBytes;
    try {
      return await copyOf(req, maxBytes).whole;
    } finally {
      this.#openCopyBytes -= maxBytes;
    }
  }

  #read({ req }: ProxyExchange, caller: Caller, jobId: string): CallObserver {
    return {
      onAnswer: ({ status, coding, body }) => {
        if (!isSuccess(status)) return;
        void jsonOf(copyOf(body, MAX_COPY_BYTES.read).whole, coding).then((job) => {
          if (hasEnded(job)) this.#onJobCall({ kind: 'fetched', caller, jobId, request: req });
        });
      },
    };
  }
}

/** A copy of a message, which is made while the message passes. */
type MessageCopy = {
  /** `undefined` when the message is too long or was cut off. */
  readonly whole: Promise<Buffer | undefined>;
  start(): Buffer | undefined;
};

function copyOf(message: Readable, maxBytes: number): MessageCopy {
  let chunks: Buffer[] = [];
  let size = 0;
  const whole = new Promise<Buffer | undefined>((resolve) => {
    message.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else chunks = chunks.slice(0, 1);
    });
    message.once('end', () => resolve(size <= maxBytes ? Buffer.concat(chunks) : undefined));
    message.once('close', () => resolve(undefined));
  });
  return { whole, start: () => chunks[0] };
}

/**
 * Returns the job of an answer that is too long to copy. Its id comes first, and the rest can be
 * read by that id.
 */
function jobAtStart(start: Buffer | undefined): JsonObject | undefined {
  const text = start?.toString('latin1', 0, MAX_ID_CHARS) ?? '';
  const [, id] = /^\s*\{\s*"id"\s*:\s*"([\w.:-]+)"/.exec(text) ?? [];
  return id === undefined ? undefined : { id, urls: {} };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function hasEnded(job: JsonObject | undefined): boolean {
  const status = job?.['status'];
  return typeof status === 'string' && IS_TERMINAL[status as JobStatus] === true;
}

async function jsonOf(
  given: Promise<Buffer | undefined>,
  contentEncoding: string | undefined,
): Promise<JsonObject | undefined> {
  const decode = DECODERS.get(contentEncoding?.trim().toLowerCase() || 'identity');
  const bytes = await given;
  if (bytes === undefined || !decode) return undefined;
  try {
    const text = await decode(bytes);
    const value = await parseWithinLimits(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    // Not valid JSON: ignored here. The client still gets it unchanged.
    return undefined;
  }
}
