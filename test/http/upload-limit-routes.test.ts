// A user whose uploads do not end: the next one is refused in the form of its API, other users are not kept out.
import { request } from 'node:http';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { createUploadLimit } from '../../src/http/upload-limit.ts';
import { createTestApp, multipart } from '../support/app/v1-routes.ts';
import { createTestV2App } from '../support/app/v2-routes.ts';

const USER = { 'X-User': 'ann' };
const FORM = multipart({ name: 'image', filename: 'a.png', data: Buffer.from('picture') });
const ASSET = multipart(
  { name: 'content_type', value: 'image/png' },
  { name: 'file_path', value: 'input/a.png' },
  { name: 'file', filename: 'a.png', data: Buffer.from('picture') },
);
const RAW = { method: 'POST', body: 'text', headers: {} };

const limits = () => ({
  uploads: { limitUploads: createUploadLimit({ maxPerUser: 1, maxWaitMs: 20 }) },
});

/** Begins an upload of the user and sends nothing of its body. */
async function stall(url: string, path: string): Promise<void> {
  const headers = {
    ...USER,
    'Content-Type': 'multipart/form-data; boundary=b',
    'Content-Length': 1000,
  };
  const call = request(url + path, { method: 'POST', headers }).on('error', () => {});
  onTestFinished(() => void call.destroy());
  call.flushHeaders();
  await once(call, 'socket');
  // A second call over another connection is answered after the head of the first one has been read.
  await fetch(`${url}/none`).then((response) => response.text());
}

const ROWS = [
  ['POST /upload/image', createTestApp, '/upload/image', FORM],
  ['POST /userdata/a.json', createTestApp, '/userdata/a.json', RAW],
  ['POST /api/v2/assets', createTestV2App, '/api/v2/assets', ASSET],
] as const;

test.each(ROWS)('%s waits for earlier uploads of its user only', async (_, open, path, body) => {
  const app = await open(limits());
  onTestFinished(() => app.close());
  await stall(app.url, path);
  const asUser = (user: string) =>
    app.ask(path, { ...body, headers: { ...body.headers, 'X-User': user } });
  const refused = await asUser('ann');
  expect(refused.status).toBe(503);
  expect(refused.headers['retry-after']).toBe('5');
  expect(refused.headers['connection']).toBe('close');
  expect((await asUser('bob')).status).toBeLessThan(300);
  expect((await app.spooled()).length).toBeLessThan(2);
});
