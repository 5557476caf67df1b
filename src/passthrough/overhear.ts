import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type Koa from 'koa';
import type { Caller } from '../wire/jobs.ts';
import { type JsonObject, isJsonObject, parseJson } from '../wire/json.ts';

/** A call on a job that went through and was taken: one that made it, or one that asks for its end. */
export type Overheard =
  | {
      readonly kind: 'submitted';
      readonly caller: Caller;
      /** `undefined`: too long to be kept a copy of, or not to be read. */
      readonly body: JsonObject | undefined;
      readonly job: JsonObject;
      readonly response: ServerResponse;
    }
  | { readonly kind: 'cancelled'; readonly caller: Caller; readonly jobId: string };

/** Hears what is said in a call, and is heard by nobody. */
export type Ear = {
  /** The body begins to flow. */
  onRequest(): void;
  onAnswer(answer: IncomingMessage): void;
};

/** A copy of what is said is kept up to here; bytes on their way are never held up. */
const MOST_BYTES = { body: 4 * 1024 * 1024, answer: 1024 * 1024 } as const;
/** Copies of bodies kept at a time, of all callers; who comes later goes without. */
const MOST_COPIES = 16;

const JOBS = /\/api\/v2\/jobs\/?$/;
const CANCEL = /\/api\/v2\/jobs\/([^/]+)\/cancel$/;

const UNPACK = {
  identity: async (bytes: Buffer): Promise<Buffer> => bytes,
  gzip: unpacking(promisify(gunzip)),
  deflate: unpacking(promisify(inflate)),
  br: unpacking(promisify(brotliDecompress)),
} as const;

/** Listens to the calls that make jobs and end them; of all others it hears nothing. */
export function createEars(tell: (heard: Overheard) => void) {
  let copies = 0;

  function ofSubmission(ctx: Koa.Context, caller: Caller): Ear {
    let body: Promise<JsonObject | undefined> = Promise.resolve(undefined);
    return {
      onRequest() {
        if (copies >= MOST_COPIES) return;
        copies++;
        body = jsonOf(ctx.req, MOST_BYTES.body).finally(() => copies--);
      },
      onAnswer(answer) {
        if (!isTaken(answer)) return;
        void jsonOf(answer, MOST_BYTES.answer).then(async (job) => {
          if (job === undefined) return;
          tell({ kind: 'submitted', caller, job, body: await body, response: ctx.res });
        });
      },
    };
  }

  /** The ear for a call of this target (its path, and query), if anything is to be heard in it. */
  return (ctx: Koa.Context, target: string, caller: Caller): Ear | undefined => {
    if (ctx.method !== 'POST') return undefined;
    const path = target.split('?', 1)[0] ?? '';
    if (JOBS.test(path)) return ofSubmission(ctx, caller);
    const jobId = decoded(CANCEL.exec(path)?.[1]);
    if (jobId === undefined) return undefined;
    return {
      onRequest() {},
      onAnswer(answer) {
        if (isTaken(answer)) tell({ kind: 'cancelled', caller, jobId });
      },
    };
  };
}

function isTaken({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

async function jsonOf(message: IncomingMessage, maxBytes: number): Promise<JsonObject | undefined> {
  const coding = message.headers['content-encoding']?.trim().toLowerCase() || 'identity';
  const bytes = await copyOf(message, maxBytes);
  if (bytes === undefined || !Object.hasOwn(UNPACK, coding)) return undefined;
  try {
    const text = await UNPACK[coding as keyof typeof UNPACK](bytes);
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(text));
    return isJsonObject(value) ? value : undefined;
  } catch {
    // Whoever it is for can make of it what he will.
    return undefined;
  }
}

function copyOf(message: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    message.on('data', function keep(chunk: Buffer) {
      size += chunk.length;
      if (size <= maxBytes) return void chunks.push(chunk);
      message.off('data', keep);
      chunks.length = 0;
      resolve(undefined);
    });
    message.once('end', () => resolve(Buffer.concat(chunks)));
    message.once('close', () => resolve(undefined));
  });
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
