import { Readable } from 'node:stream';
import type { BucketCall, BucketClient, BucketReply } from './client.ts';
import { BucketError } from './errors.ts';

/** How often the rest of an object is asked for after its connection broke. */
const MAX_RESUMES = 5;

/** `end` is inclusive; without both it is the whole object. */
type Wanted = Pick<BucketCall, 'retryForMs'> & {
  readonly start?: number | undefined;
  readonly end?: number | undefined;
};

/** The bytes of an object, or a range of them. A read that breaks off continues where it was. */
export async function openObject(
  client: BucketClient,
  key: string,
  { start = 0, end, ...patience }: Wanted,
): Promise<Readable | undefined> {
  const first = await get({ client, key, start, end, patience });
  if (first === undefined) return undefined;
  const rest = (at: number) =>
    get({ client, key, start: at, end, patience, etag: first.headers['etag'] });
  const stream = Readable.from(chunksOf(first, { start, rest }), { objectMode: false });
  // A generator that never started releases nothing: unread, the first answer keeps its connection.
  return stream.once('close', () => void first.body.dump().catch(() => {}));
}

type PartialGet = {
  readonly client: BucketClient;
  readonly key: string;
  readonly start: number;
  readonly end: number | undefined;
  readonly patience: Pick<BucketCall, 'retryForMs'>;
  readonly etag?: string | string[] | undefined;
};

async function get({ client, key, start, end, patience, etag }: PartialGet) {
  const isWhole = start === 0 && end === undefined;
  const range = `bytes=${start}-${end === undefined || end === Infinity ? '' : end}`;
  const headers = {
    ...(!isWhole && { range }),
    ...(typeof etag === 'string' && { 'if-match': etag }),
  };
  const reply = await client.send({ method: 'GET', key, headers, accept: [404], ...patience });
  if (reply.status !== 404) return reply;
  await reply.body.dump();
  return undefined;
}

type Continuation = {
  readonly start: number;
  readonly rest: (at: number) => Promise<BucketReply | undefined>;
};

async function* chunksOf(
  first: BucketReply,
  { start, rest }: Continuation,
): AsyncGenerator<Buffer> {
  const endAt = start + Number(first.headers['content-length']);
  let reply: BucketReply | undefined = first;
  for (let at = start, resumes = 0; ; resumes += 1) {
    try {
      for await (const chunk of reply.body) {
        at += chunk.length;
        yield chunk;
      }
      if (at >= endAt) return;
      throw new BucketError('an object broke off while it was read', {});
    } catch (cause) {
      if (at >= endAt) return;
      reply = resumes < MAX_RESUMES ? await rest(at) : undefined;
      if (reply === undefined)
        throw new BucketError('an object broke off while it was read', { cause });
    }
  }
}
