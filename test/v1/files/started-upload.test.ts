import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { StartedUpload, UploadStart } from '../../../src/protocol/job-api.ts';
import type { Called } from '../../support/clients/raw-call.ts';
import { type Part, type TestApp, createTestApp, multipart } from '../../support/app/v1-routes.ts';

const MB = 1024 * 1024;
const MAX_BYTES = 8 * MB;

type Start = UploadStart & { readonly started: StartedUpload; isCancelled: boolean };

let app: TestApp;
let starts: Start[];
let created: (StartedUpload | undefined)[];

beforeEach(async () => {
  starts = [];
  created = [];
  app = await createTestApp({
    uploads: {
      maxUploadBytes: MAX_BYTES,
      startUpload(_caller, upload) {
        const start: Start = {
          ...upload,
          isCancelled: false,
          started: {
            finish: async () => undefined,
            cancel: () => void (start.isCancelled = true),
          },
        };
        starts.push(start);
        return start.started;
      },
    },
  });
  const createAsset = app.assets.createAsset;
  vi.spyOn(app.assets, 'createAsset').mockImplementation((caller, upload) => {
    created.push(upload.started);
    return createAsset(caller, upload);
  });
});
afterEach(() => app.close());

function send(path: string, ...parts: Part[]): Promise<Called> {
  return app.ask(path, multipart(...parts));
}

const image = (data: Buffer): Part => ({ name: 'image', filename: 'cat.png', data });

test('a large image is started before the form is complete, and stored under what the form asks for', async () => {
  const data = randomBytes(3 * MB);
  const later: Part[] = [
    { name: 'subfolder', value: 'pasted' },
    { name: 'overwrite', value: 'true' },
  ];
  const answer = await send('/upload/image', image(data), ...later);
  expect(answer.status).toBe(200);
  expect(starts).toHaveLength(1);
  expect(starts[0]).toMatchObject({ contentType: 'image/png' });
  expect(starts[0]?.atMostBytes).toBeGreaterThan(data.length);
  expect(created).toEqual([starts[0]?.started]);
  const viewed = await app.ask('/view?filename=cat.png&type=input&subfolder=pasted');
  expect(viewed.body.equals(data)).toBe(true);
  expect(app.assets.calls).toEqual(['createAsset', 'content']);
});

test('a small image is complete before it is sent', async () => {
  expect((await send('/upload/image', image(randomBytes(MB / 2)))).status).toBe(200);
  expect(starts).toEqual([]);
});

test('the same bytes under the same name end the request that was started', async () => {
  const data = randomBytes(2 * MB);
  await send('/upload/image', image(data));
  expect((await send('/upload/image', image(data))).status).toBe(200);
  expect(starts.map(({ isCancelled }) => isCancelled)).toEqual([true, true]);
  expect(created).toHaveLength(1);
});

async function expectCancelled(): Promise<void> {
  expect(starts).toHaveLength(1);
  expect(starts[0]?.isCancelled).toBe(true);
  expect(created.filter((started) => started !== undefined)).toEqual([]);
  expect(await app.spooled()).toEqual([]);
}

test.each([
  ['asks for an impossible type', [image(randomBytes(2 * MB)), { name: 'type', value: 'x' }], 400],
  [
    'has a small image before a large one',
    [image(randomBytes(2)), image(randomBytes(2 * MB))],
    200,
  ],
] as const)('a form that %s ends the request that was started', async (_what, parts, status) => {
  expect((await send('/upload/image', ...parts)).status).toBe(status);
  await expectCancelled();
});

test('a form that turns out to be too large ends the request that was started', async () => {
  const { body, headers } = multipart(image(randomBytes(MAX_BYTES)));
  const outgoing = request(`${app.url}/upload/image`, { method: 'POST', headers });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  outgoing.write(body);
  outgoing.end();
  const [answer] = await answered;
  expect(answer.statusCode).toBe(413);
  answer.destroy();
  await expectCancelled();
});

test('a mask is never started: other bytes are stored in its place', async () => {
  const ref = { name: 'original_ref', value: JSON.stringify({ filename: 'gone.png' }) };
  const answer = await send('/upload/mask', image(randomBytes(2 * MB)), ref);
  expect(answer.status).toBe(400);
  expect(starts).toEqual([]);
});
