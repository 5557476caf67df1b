// The memory that texts of callers take: keys, names, addresses and headers, each of a large size.
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { expect, test, vi } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { scrape } from '../support/processes/scrape.ts';
import { dial, requestText } from '../support/clients/raw-socket.ts';
import { entryOf } from '../support/clients/client-helpers.ts';
import { postPrompt } from '../support/clients/v1-client.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 30_000 });

const MEBIBYTE = 1024 * 1024;
const COLLECT_GARBAGE = fileURLToPath(
  new URL('../support/processes/collect-garbage.cjs', import.meta.url),
);

const env = { NODE_OPTIONS: `--require=${COLLECT_GARBAGE}` };
const server = useHoldover({ upstream: 'embedded', env });

/** After a collection: before one a busy server holds far more than it keeps. */
async function heapMb(): Promise<number> {
  process.kill(server.pid, 'SIGUSR2');
  await delay(500);
  const { of } = await scrape(server.url);
  return of('nodejs_heap_size_used_bytes') / MEBIBYTE;
}

/** A text of this length that begins like no other. */
const long = (i: number, length: number): string => `${i}-`.padEnd(length, 'x');

/** Makes the calls, sixteen at a time. */
async function each(count: number, call: (i: number) => ReturnType<typeof request>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await (await call(next++)).body.dump();
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

test('texts of callers fill memory to a limit', async () => {
  const before = await heapMb();
  await (await fetch(`${server.url}/holdover/api/traffic?scope=all`)).arrayBuffer();
  // The log of 20 users, the inspector, the unknown routes and the programs.
  await each(2400, (i) =>
    request(`${server.url}/nowhere/${long(i, 4000)}`, {
      headers: {
        'X-API-Key': `user-${i % 20}`,
        'User-Agent': long(i, 4000),
        'X-Note': long(i, 7000),
      },
    }),
  );
  // The users and their keys, also as readers of the inspector.
  await each(600, (i) =>
    request(`${server.url}/holdover/api/traffic`, {
      headers: { 'X-API-Key': long(i, 12_000) },
    }),
  );
  // The names of files, counters and partner keys.
  await each(200, (i) =>
    request(`${server.url}/prompt`, {
      method: 'POST',
      body: JSON.stringify({
        prompt: {
          1: { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
          2: {
            class_type: 'SaveImage',
            inputs: { images: ['1', 0], filename_prefix: long(i, 200) },
          },
        },
        client_id: long(i, 128),
        prompt_id: long(i, 200),
        extra_data: { api_key_comfy_org: long(i, 4096), auth_token_comfy_org: long(-i, 4096) },
      }),
    }),
  );
  await expect.poll(heapMb).toBeLessThan(before + 40);
});

test('clients that do not read their history hold one copy of an entry each', async () => {
  const { body } = await postPrompt(server.url, {
    prompt: { 1: { class_type: 'PreviewAny', inputs: { source: 'x' } } },
    extra_data: { extra_pnginfo: { note: long(0, 12 * MEBIBYTE) } },
  });
  await expect.poll(() => entryOf(server.url, body.prompt_id), { timeout: 20_000 }).toBeDefined();
  const before = await heapMb();
  const readers = await Promise.all(Array.from({ length: 8 }, () => dial(server.port)));
  for (const reader of readers) {
    reader.socket.pause();
    reader.send(requestText('/history'));
  }
  await expect.poll(heapMb, { timeout: 20_000 }).toBeGreaterThan(before + 8 * 12);
  expect(await heapMb()).toBeLessThan(before + 8 * 12 * 1.6);
  for (const reader of readers) reader.reset();
});
