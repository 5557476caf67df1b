import type { Readable } from 'node:stream';
import type { BucketCall, BucketClient, BucketReply } from './client.ts';
import { BucketError } from './errors.ts';
import { resumedBytes } from '../resumed-bytes.ts';

/** How often the rest of an object is requested after its connection broke. */
const MAX_RESUMES = 5;

/** `end` is inclusive. Without both, the whole object is read. */
type Wanted = Pick<BucketCall, 'retryForMs'> & {
  readonly start?: number | undefined;
  readonly end?: number | undefined;
};

/** Opens an object, or a range of it. An interrupted read continues at the same byte. */
export async function openObject(
  client: BucketClient,
  key: string,
  { start = 0, end, ...patience }: Wanted,
): Promise<Readable | undefined> {
  const first = await get({ client, key, start, end, patience });
  if (first === undefined) return undefined;
  const { 'content-length': length, etag } = first.headers;
  let resumes = 0;
  async function reopen(at: number, cause: unknown): Promise<BucketReply['body']> {
    const mayResume = resumes++ < MAX_RESUMES;
    const rest = mayResume ? await get({ client, key, start: at, end, patience, etag }) : undefined;
    if (rest) return rest.body;
    throw new BucketError('an object broke off while it was read', { cause });
  }
  const plan = { start, end: start + Number(length) - 1, reopen };
  const stream = resumedBytes(first.body, plan);
  // A generator that never started releases nothing: an unread first answer would keep its
  // connection.
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
