import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { jsonWithin } from '../http/json-body.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Exchange } from './call.ts';
import { type JsonObject, isJsonObject } from '../wire/json.ts';
import { IS_TERMINAL, type JobStatus } from '../wire/v2.ts';

/** A call on a job that went through: one that made it, asks for its end, or had its result. */
export type Overheard =
  | {
      readonly kind: 'submitted';
      readonly caller: Caller;
      /** Reads what was sent; `undefined`: too long to be kept a copy of, or not to be read. */
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

/** Hears what is said in a call, and is heard by nobody. */
export type Ear = {
  /** The body is here as a whole, or begins to flow. */
  onRequest(body?: Buffer): void;
  /** Where a copy of the answer is to go, if it is of interest. */
  onAnswer(head: {
    readonly status: number;
    readonly coding: string | undefined;
  }): Copy | undefined;
};

/** What is kept of a message while it passes. */
export type Copy = {
  add(chunk: Buffer): void;
  end(how: 'whole' | 'cut off'): void;
};

/** A copy of what is said is kept up to here; bytes on their way are never held up. */
const MOST_BYTES = { body: 4 * 1024 * 1024, answer: 1024 * 1024 } as const;
/** Copies of bodies kept at a time, of all callers; who comes later goes without. */
const MOST_COPIES = 16;

const JOBS = /\/api\/v2\/jobs\/?$/;
const JOB = /\/api\/v2\/jobs\/([^/]+)$/;
const CANCEL = /\/api\/v2\/jobs\/([^/]+)\/cancel$/;

const UNPACK = {
  identity: async (bytes: Buffer): Promise<Buffer> => bytes,
  gzip: unpacking(promisify(gunzip)),
  deflate: unpacking(promisify(inflate)),
  br: unpacking(promisify(brotliDecompress)),
} as const;

/** Listens to the calls that make jobs, end them and read them; of all others it hears nothing. */
export function createEars(tell: (heard: Overheard) => void) {
  let copies = 0;

  function ofSubmission({ req, res }: Exchange, caller: Caller): Ear {
    let kept: Promise<Buffer | undefined> = Promise.resolve(undefined);
    return {
      onRequest(body) {
        if (body) kept = Promise.resolve(body);
        if (body || copies >= MOST_COPIES) return;
        copies++;
        const copy = createCopy(MOST_BYTES.body);
        pour(req, copy);
        kept = copy.bytes.finally(() => copies--);
      },
      onAnswer({ status, coding }) {
        if (!isTaken(status)) return undefined;
        const copy = createCopy(MOST_BYTES.answer);
        const body = () => jsonOf(kept, req.headers['content-encoding']);
        void jsonOf(copy.bytes, coding).then((job) => {
          if (job) tell({ kind: 'submitted', caller, job, body, response: res });
        });
        return copy;
      },
    };
  }

  function ofReading({ req }: Exchange, caller: Caller, jobId: string): Ear {
    return {
      onRequest() {},
      onAnswer({ status, coding }) {
        if (!isTaken(status)) return undefined;
        const copy = createCopy(MOST_BYTES.answer);
        void jsonOf(copy.bytes, coding).then((job) => {
          if (isOver(job)) tell({ kind: 'fetched', caller, jobId, request: req });
        });
        return copy;
      },
    };
  }

  /** The ear for a call of this target (its path, and query), if anything is to be heard in it. */
  return (exchange: Exchange, target: string, caller: Caller): Ear | undefined => {
    const { method } = exchange.req;
    if (method !== 'POST' && method !== 'GET') return undefined;
    const path = target.split('?', 1)[0] ?? '';
    if (method === 'GET') {
      const jobId = decoded(JOB.exec(path)?.[1]);
      return jobId === undefined ? undefined : ofReading(exchange, caller, jobId);
    }
    if (JOBS.test(path)) return ofSubmission(exchange, caller);
    const jobId = decoded(CANCEL.exec(path)?.[1]);
    if (jobId === undefined) return undefined;
    return {
      onRequest() {},
      onAnswer({ status }) {
        if (isTaken(status)) tell({ kind: 'cancelled', caller, jobId });
        return undefined;
      },
    };
  };
}

/** Lets a copy have all that flows through a message. */
export function pour(message: IncomingMessage, copy: Copy | undefined): void {
  if (!copy) return;
  message.on('data', (chunk: Buffer) => copy.add(chunk));
  message.once('end', () => copy.end('whole'));
  message.once('close', () => copy.end('cut off'));
}

function createCopy(maxBytes: number): Copy & { readonly bytes: Promise<Buffer | undefined> } {
  let chunks: Buffer[] = [];
  let size = 0;
  let resolve: (bytes: Buffer | undefined) => void = () => {};
  const bytes = new Promise<Buffer | undefined>((then) => (resolve = then));
  return {
    bytes,
    add(chunk) {
      size += chunk.length;
      if (size <= maxBytes) return void chunks.push(chunk);
      chunks = [];
      resolve(undefined);
    },
    end: (how) => resolve(how === 'whole' && size <= maxBytes ? Buffer.concat(chunks) : undefined),
  };
}

function isTaken(status: number): boolean {
  return status >= 200 && status < 300;
}

function isOver(job: JsonObject | undefined): boolean {
  const status = job?.['status'];
  return typeof status === 'string' && IS_TERMINAL[status as JobStatus] === true;
}

async function jsonOf(
  given: Promise<Buffer | undefined>,
  contentEncoding: string | undefined,
): Promise<JsonObject | undefined> {
  const coding = contentEncoding?.trim().toLowerCase() || 'identity';
  const bytes = await given;
  if (bytes === undefined || !Object.hasOwn(UNPACK, coding)) return undefined;
  try {
    const text = await UNPACK[coding as keyof typeof UNPACK](bytes);
    const value = await jsonWithin(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    // Whoever it is for can make of it what he will.
    return undefined;
  }
}

function unpacking(
  unpack: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>,
): (bytes: Buffer) => Promise<Buffer> {
  return (bytes) => unpack(bytes, { maxOutputLength: 4 * MOST_BYTES.body });
}

function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
