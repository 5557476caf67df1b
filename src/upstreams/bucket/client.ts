import { type Dispatcher, Pool } from 'undici';
import type { Clock } from '../../lib/clock.ts';
import { readAtMost } from '../../lib/read-at-most.ts';
import type { Logger } from '../../observability/log.ts';
import {
  type BucketAnswer,
  BucketError,
  isAboutCredentials,
  isAbsence,
  mayPass,
  refusalTextOf,
} from './errors.ts';
import type { Signer } from './signer.ts';
import { textOf } from './xml.ts';

/** One call to a bucket. */
export type BucketCall = {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** The key without the prefix; absent when the call is about the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /**
   * Statuses other than 2xx that are an answer and not an error. 404 counts only for an object or
   * an upload that does not exist.
   */
  readonly accept?: readonly number[];
  /** How long a failed call is repeated. */
  readonly retryForMs?: number;
};

/** An answer of a bucket that is not an error. Read its body, or call `dump`. */
export type BucketReply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Buffer> & { text(): Promise<string>; dump(): Promise<unknown> };
  /** True when an earlier attempt may have succeeded with its answer lost. */
  readonly isRepeated: boolean;
};

/**
 * An answer that is an error. `renew` returns true when there are other credentials to sign with.
 */
type Refusal = { readonly answer: BucketAnswer; readonly renew: () => Promise<boolean> };

type Attempt = Omit<BucketReply, 'isRepeated'> | Refusal;

type BucketPlace = {
  readonly bucket: string;
  /** The text before all keys: empty, or ending with a slash. */
  readonly prefix: string;
  /** The address of the server that has the bucket. */
  readonly endpoint: string;
  /** The address at which callers reach that server, for links. */
};

type ClientOptions = BucketPlace & {
  readonly signer: Signer;
  /** A clock that does not go back when the wall clock is set. */
  readonly deadlineClock: Clock;
  readonly log: Logger;
};

/** Calls one bucket in path style, by keys below its prefix. */
export type BucketClient = ReturnType<typeof createBucketClient>;

const TIMEOUTS_MS = { connect: 5000, headers: 30_000, body: 30_000 };
const CONNECTIONS = 64;
/** How long an interactive caller waits for the head of an answer, repetitions included. */
const RETRY_FOR_MS = 5000;
const RETRY_DELAY_MS = { first: 100, longest: 5000 };
const MAX_ERROR_BYTES = 64 * 1024;

/** Opens a pool. `connections` is the maximum number at a time; `null` for no limit. */
function openPool(endpoint: string, connections: number | null): Pool {
  return new Pool(new URL(endpoint).origin, {
    connect: { timeout: TIMEOUTS_MS.connect },
    connections,
    pipelining: 1,
    headersTimeout: TIMEOUTS_MS.headers,
    bodyTimeout: TIMEOUTS_MS.body,
  });
}

/** Creates a client. Its calls are signed, and repeated after temporary errors. */
export function createBucketClient(options: ClientOptions) {
  const { bucket, prefix, endpoint, signer, deadlineClock: clock, log } = options;
  const calls = openPool(endpoint, CONNECTIONS);
  // A client that reads slowly occupies the connection of its file: it must not make other calls
  // wait.
  const downloads = openPool(endpoint, null);
  let isReported = false;

  function urlOf(base: string, { key, query = {} }: Pick<BucketCall, 'key' | 'query'>): URL {
    const path = key === undefined ? bucket : `${bucket}/${prefix}${key}`;
    const url = new URL(`${base.replace(/\/$/, '')}/${path.split('/').map(encoded).join('/')}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  /** Waits for a free connection and for the head of the answer, together at most `limitMs`. */
  async function request(
    pool: Pool,
    options: Dispatcher.RequestOptions,
    limitMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const late = new AbortController();
    const stop = clock.callAfter(limitMs, () =>
      late.abort(new Error('it does not answer in time')),
    );
    try {
      return await pool.request({ ...options, signal: late.signal });
    } finally {
      stop();
    }
  }

  async function attempt(call: BucketCall, limitMs: number): Promise<Attempt> {
    const url = urlOf(endpoint, call);
    const headers = await headersOf(call);
    const signed = await signer.sign({ method: call.method, url: url.href, headers });
    const path = url.pathname + url.search;
    const { method, body: bytes = null } = call;
    const isDownload = method === 'GET' && call.key !== undefined;
    const reply = await request(
      isDownload ? downloads : calls,
      { method, path, headers: signed.headers, body: bytes },
      movesBytes(call) ? Math.max(limitMs, TIMEOUTS_MS.headers) : limitMs,
    );
    const { statusCode: status, body } = reply;
    // The reader of a body gets its error. A body without a reader must not end the process.
    body.on('error', () => {});
    const isAccepted = call.accept?.includes(status) === true;
    if ((status >= 200 && status < 300) || (isAccepted && status !== 404))
      return { status, headers: reply.headers, body: body as BucketReply['body'] };
    const answer = await readError(reply);
    if (isAccepted && isAbsence(answer)) return { status, headers: {}, body: NO_BODY };
    return { answer, renew: signed.renew };
  }

  /** Returns true when a repeated call may succeed. */
  async function isWorthRepeating({ answer, renew }: Refusal): Promise<boolean> {
    const serverMs = Date.parse(answer.date ?? '');
    if (answer.code === 'RequestTimeTooSkewed' && Number.isFinite(serverMs)) {
      signer.setTime(serverMs);
      return true;
    }
    if (isAboutCredentials(answer)) return await renew();
    return mayPass(answer);
  }

  async function readError(reply: Dispatcher.ResponseData): Promise<BucketAnswer> {
    const text = await readText(reply.body);
    const region = reply.headers['x-amz-bucket-region'];
    const isElsewhere = reply.statusCode === 301 || textOf(text, 'Region') !== undefined;
    return {
      status: reply.statusCode,
      code: textOf(text, 'Code') ?? '',
      date: String(reply.headers['date'] ?? ''),
      ...(isElsewhere && { region: textOf(text, 'Region') ?? (region as string | undefined) }),
    };
  }

  /** Repeats a call while that may help, within its time limit. */
  async function send(call: BucketCall): Promise<BucketReply> {
    const untilMs = clock.now() + (call.retryForMs ?? RETRY_FOR_MS);
    for (let tries = 0; ; tries += 1) {
      let failure: BucketError;
      let mayHelp = true;
      try {
        const result = await attempt(call, untilMs - clock.now());
        if ('body' in result) {
          reportReturn();
          return { ...result, isRepeated: tries > 0 };
        }
        const { answer } = result;
        failure = new BucketError(`the bucket ${bucket} refuses: ${refusalTextOf(answer)}`, {
          answer,
        });
        mayHelp = await isWorthRepeating(result);
      } catch (cause) {
        failure = new BucketError(`${endpoint} cannot be reached: ${causeText(cause)}`, { cause });
      }
      const waitMs = delayOf(tries);
      if (!mayHelp || clock.now() + waitMs > untilMs) {
        report(failure, call);
        throw failure;
      }
      await clock.sleep(waitMs);
    }
  }

  /** Logs each outage of the bucket once. */
  function report(err: BucketError, { method }: BucketCall): void {
    const fields = { event: 'bucket.call_failed', bucket, method, reason: err.message };
    if (isReported) log.debug(fields, 'a call of the bucket failed');
    else
      log.error(fields, 'a call of the bucket failed: calls that need its files are answered 503');
    isReported = true;
  }

  function reportReturn(): void {
    if (isReported) log.info({ event: 'bucket.back', bucket }, 'the bucket answers again');
    isReported = false;
  }

  return {
    bucket,
    send,
    /** Makes a call whose answer has no relevant body. */
    async done(call: BucketCall): Promise<BucketReply> {
      const reply = await send(call);
      await reply.body.dump();
      return reply;
    },
    /** Makes a call whose answer is a short text. */
    async text(call: BucketCall): Promise<string> {
      return await (await send(call)).body.text();
    },
    /** Returns a key with the prefix, as the bucket has it. */
    fullKey: (key: string): string => prefix + key,
    /** Returns a key of the bucket without the prefix. */
    ownKey: (fullKey: string): string => fullKey.slice(prefix.length),
    /** Returns the value of `x-amz-copy-source` for a key. */
    copySource: (key: string): string =>
      `/${bucket}/${prefix}${key}`.split('/').map(encoded).join('/'),
    /** Returns a link that callers may open without credentials. */
    link: (key: string, query: Readonly<Record<string, string>>, lifetimeS: number) =>
      signer.link(urlOf(endpoint, { key, query }), lifetimeS),
    async close(): Promise<void> {
      await Promise.all([calls.destroy(), downloads.destroy()]);
    },
  };
}

const NO_BODY: BucketReply['body'] = {
  text: async () => '',
  dump: async () => {},
  async *[Symbol.asyncIterator]() {},
};

/** Returns true for a call that sends bytes, or makes the bucket join some. Such a call takes longer. */
function movesBytes({ body, headers = {} }: BucketCall): boolean {
  return (body?.length ?? 0) > 0 || 'x-amz-copy-source' in headers;
}

async function headersOf({ body, headers = {} }: BucketCall): Promise<Record<string, string>> {
  if (body === undefined) return { ...headers };
  return {
    ...headers,
    // The server compares this value with the bytes it received.
    'x-amz-content-sha256': await sha256Hex(body),
  };
}

/** Runs in the thread pool, so that it does not block the event loop. */
async function sha256Hex(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>);
  return Buffer.from(digest).toString('hex');
}

/** Encodes all characters but those that every URL may hold, as signatures require. */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function delayOf(tries: number): number {
  const longest = Math.min(RETRY_DELAY_MS.first * 2 ** tries, RETRY_DELAY_MS.longest);
  return longest * (0.5 + Math.random() / 2);
}

/** Reads a text. If it cannot be read, the status is enough. */
async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const bytes = await readAtMost(MAX_ERROR_BYTES, body).catch(() => undefined);
  return String(bytes ?? '');
}

/** Returns the text of a cause. Errors of a connection contain no credentials. */
function causeText(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code } = cause as NodeJS.ErrnoException;
  return code === undefined || cause.message.includes(code)
    ? cause.message || String(code)
    : `${cause.message} (${code})`;
}
