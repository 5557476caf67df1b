import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

const KEY = 'upload-1';
let dataDir: string;
let server: Holdover;
const start = (env = {}) => startHoldover({ upstream: 'embedded', dataDir, env });
/** Left an upload without an answer. */
beforeAll(async () => {
  dataDir = await runFolder('asset-keys');
  server = await start({ HOLDOVER_CRASH_AT: 'after-asset-recorded' });
  await expect(upload('bytes')).rejects.toThrow();
  server = await start();
});
afterAll(() => server.dispose());

/** Each test has a user of its own. */
const keyOf = (user: string, key = KEY) => ({
  Authorization: `Bearer ${user}`,
  'Idempotency-Key': key,
});
const USER = 'the-first-one';

async function upload(
  text: string,
  headers: Record<string, string> = keyOf(USER),
): Promise<{ status: number; body: any }> {
  const body = new FormData();
  body.set('content_type', 'text/plain');
  body.set('file_path', 'input/a.txt');
  body.set('file', new Blob([text]), 'a.txt');
  const answer = await fetch(`${server.url}/api/v2/assets`, { method: 'POST', body, headers });
  return { status: answer.status, body: await answer.json() };
}

async function createFromHash(
  hash: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: any }> {
  const body = JSON.stringify({ hash });
  const answer = await fetch(`${server.url}/api/v2/assets/from-hash`, {
    method: 'POST',
    body,
    headers,
  });
  return { status: answer.status, body: await answer.json() };
}

test('uploads of different bytes with one key at once: one is taken, the others are refused', async () => {
  const texts = ['a', 'b', 'c', 'd', 'e'];
  const answers = await Promise.all(texts.map((text) => upload(text, keyOf('many'))));
  const statuses = answers.map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([201, 422, 422, 422, 422]);
  const taken = texts[answers.findIndex(({ status }) => status === 201)] ?? '';
  for (const text of texts) {
    const again = await upload(text, { Authorization: 'Bearer many' });
    expect([text, again.body.created_new]).toEqual([text, text !== taken]);
  }
});

test('a key survives kill -9, of both ways to make an asset, for each user', async () => {
  const made = await upload('kept', keyOf('ann'));
  const created = await createFromHash(made.body.hash, keyOf('ann', 'from-hash-1'));
  expect([made.status, created.status]).toEqual([201, 201]);
  await server.kill9();
  server = await start();
  const reused = { status: 422, body: { error: { code: 'idempotency_key_reuse' } } };
  expect(await upload('kept', keyOf('ann'))).toMatchObject(reused);
  expect(await createFromHash(made.body.hash, keyOf('ann', 'from-hash-1'))).toMatchObject(reused);
  expect((await upload('kept', keyOf('ben'))).status).toBe(201);
});

test('the key of an upload that was recorded, but not answered, is used up; its bytes are there', async () => {
  expect((await upload('bytes')).status).toBe(422);
  expect(await upload('bytes', keyOf(USER, 'another'))).toMatchObject({
    status: 200,
    body: { created_new: false },
  });
});
