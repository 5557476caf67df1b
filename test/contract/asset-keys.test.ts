import { afterEach, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

const KEY = { 'Idempotency-Key': 'upload-1' };
let started: Holdover[] = [];
afterEach(async () => {
  for (const holdover of started) await holdover.dispose();
  started = [];
});

async function start(options: Parameters<typeof startHoldover>[0] = {}): Promise<Holdover> {
  const holdover = await startHoldover({ upstream: 'embedded', ...options });
  started.push(holdover);
  return holdover;
}

async function upload(
  { url }: Holdover,
  text: string,
  headers: Record<string, string> = KEY,
): Promise<{ status: number; body: any }> {
  const body = new FormData();
  body.set('content_type', 'text/plain');
  body.set('file_path', 'input/a.txt');
  body.set('file', new Blob([text]), 'a.txt');
  const answer = await fetch(`${url}/api/v2/assets`, { method: 'POST', body, headers });
  return { status: answer.status, body: withoutLink(await answer.json()) };
}

/** Every answer brings a link of its own, signed when it is given. */
function withoutLink(body: any): any {
  const path = body.url && new URL(body.url).pathname;
  return { ...body, url: path, url_expires_at: undefined };
}

async function createFromHash(
  { url }: Holdover,
  hash: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: any }> {
  const body = JSON.stringify({ hash });
  const answer = await fetch(`${url}/api/v2/assets/from-hash`, { method: 'POST', body, headers });
  return { status: answer.status, body: withoutLink(await answer.json()) };
}

test('uploads of different bytes with one key at once: one is taken, the others are refused', async () => {
  const holdover = await start();
  const texts = ['a', 'b', 'c', 'd', 'e'];
  const answers = await Promise.all(texts.map((text) => upload(holdover, text)));
  const statuses = answers.map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([201, 422, 422, 422, 422]);
  const taken = texts[answers.findIndex(({ status }) => status === 201)] ?? '';
  for (const text of texts) {
    const again = await upload(holdover, text, {});
    expect([text, again.body.created_new]).toEqual([text, text !== taken]);
  }
});

test('a key survives kill -9, of both ways to make an asset, for each user', async () => {
  const first = await start();
  const made = await upload(first, 'bytes');
  const created = await createFromHash(first, made.body.hash, { 'Idempotency-Key': 'from-hash-1' });
  await first.kill9();
  const next = await start({ dataDir: first.dataDir });
  const others = { ...KEY, Authorization: 'Bearer another-user' };
  expect(await upload(next, 'bytes')).toEqual(made);
  expect(await createFromHash(next, made.body.hash, { 'Idempotency-Key': 'from-hash-1' })).toEqual(
    created,
  );
  expect((await upload(next, 'bytes', others)).body.id).not.toBe(made.body.id);
});

test('an upload that was recorded, but not answered, is answered to its retry', async () => {
  const first = await start({ env: { HOLDOVER_CRASH_AT: 'after-asset-recorded' } });
  await expect(upload(first, 'bytes')).rejects.toThrow();
  const next = await start({ dataDir: first.dataDir });
  const retried = await upload(next, 'bytes');
  expect(retried).toMatchObject({ status: 201, body: { created_new: true } });
  expect(await upload(next, 'bytes')).toEqual(retried);
  expect((await upload(next, 'else')).status).toBe(422);
});
