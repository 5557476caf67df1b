// A data directory on a disk that is really full: 507 in each API's own words, and nothing is lost.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const DISK_BYTES = 24 * 2 ** 20;
const missing = tmpfsMissing();

/** Why a small disk cannot be had here; empty when it can. */
function tmpfsMissing(): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'holdover-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' });
    execFileSync('umount', [folder]);
    return '';
  } catch {
    return ' (NOT RUN: a small disk cannot be mounted, which takes root)';
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** More than is left in the log of the database, which is written over from its start now and then. */
const LARGE = 'x'.repeat(900_000);
const JSON_TYPE = { 'Content-Type': 'application/json' };

describe.skipIf(missing !== '')(`on a full disk${missing}`, () => {
  let disk: string;
  let server: Holdover;
  beforeEach(async () => {
    disk = fs.mkdtempSync(join(tmpdir(), 'holdover-disk-'));
    const options = ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', disk];
    execFileSync('mount', options);
    server = await startHoldover({ dataDir: join(disk, 'data'), upstream: 'embedded' });
  });
  afterEach(async () => {
    await server.dispose();
    execFileSync('umount', [disk]);
    fs.rmSync(disk, { recursive: true, force: true });
  });

  const filler = (): string => join(disk, 'filler');
  function fill(): void {
    const file = fs.openSync(filler(), 'w');
    for (const size of [2 ** 16, 2 ** 12, 1]) {
      try {
        for (;;) if (fs.writeSync(file, Buffer.alloc(size, 1)) < size) break;
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
      }
    }
    fs.closeSync(file);
  }
  const post = (path: string, body: string | FormData, headers: Record<string, string> = {}) =>
    fetch(server.url + path, {
      method: 'POST',
      body,
      headers: { ...(typeof body === 'string' && JSON_TYPE), ...headers },
      signal: AbortSignal.timeout(20_000),
    });
  const picture = (bytes: Buffer | string, fields: Record<string, string> = {}): FormData => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append('image', new Blob([bytes as BlobPart]), 'big.png');
    return form;
  };
  const heavyPrompt = () =>
    JSON.stringify({ prompt: flat(), extra_data: { extra_pnginfo: { workflow: LARGE } } });
  const job = () => JSON.stringify({ workflow: flat({ prefix: LARGE }), metadata: {} });
  const asset = (): FormData => {
    const form = new FormData();
    form.append('content_type', 'application/octet-stream');
    form.append('file_path', 'input/a.bin');
    form.append('file', new Blob([LARGE]), 'a.bin');
    return form;
  };

  const V1: readonly [string, () => Promise<Response>][] = [
    ['POST /upload/image', () => post('/upload/image', picture(LARGE))],
    ['POST /prompt', () => post('/prompt', heavyPrompt())],
    ['POST /settings', () => post('/settings', JSON.stringify({ a: LARGE }))],
    ['POST /settings/:id', () => post('/settings/a', JSON.stringify(LARGE))],
    ['POST /userdata/:file', () => post('/userdata/workflows%2Fa.json', LARGE)],
  ];

  test.each(V1)('%s is 507 in v1’s form, and works again with room', async (_, send) => {
    fill();
    const refused = await send();
    const text = await refused.text();
    expect([refused.status, text.length > 0]).toEqual([507, true]);
    expect(text).toMatch(/no room/);
    if (refused.headers.get('content-type')?.includes('json')) {
      const body = JSON.parse(text);
      const error = { type: 'insufficient_storage', message: expect.stringMatching('no room') };
      expect(body).toMatchObject({ error, node_errors: {} });
    }
    fs.rmSync(filler());
    expect((await send()).status).toBe(200);
  });

  test('a mask is 507, and works again with room', async () => {
    const original = await pngOf();
    await uploadInput(server.url, { bytes: original, name: 'o.png' });
    const send = () =>
      post(
        '/upload/mask',
        picture(original, { original_ref: JSON.stringify({ filename: 'o.png', type: 'input' }) }),
      );
    fill();
    const refused = await send();
    expect([refused.status, await refused.text()]).toEqual([507, expect.stringMatching('no room')]);
    fs.rmSync(filler());
    expect((await send()).status).toBe(200);
  });

  const V2: readonly [string, () => Promise<Response>][] = [
    ['POST /api/v2/assets', () => post('/api/v2/assets', asset())],
    ['POST /api/v2/jobs', () => post('/api/v2/jobs', job())],
  ];
  test.each(V2)('%s is 507 in v2’s form, and works again with room', async (_, send) => {
    fill();
    const refused = await send();
    expect([refused.status, await refused.json()]).toEqual([
      507,
      {
        error: {
          code: 'insufficient_storage',
          message: expect.stringMatching('no room'),
          details: null,
        },
      },
    ]);
    fs.rmSync(filler());
    expect([201, 202, 200]).toContain((await send()).status);
  });

  test('a model call is 507 in the router’s form', async () => {
    const input = JSON.stringify({ seconds: 0, text: 'z'.repeat(50_000) });
    fill();
    const answers = [];
    for (let n = 0; n < 300; n += 1) {
      const headers = { 'X-API-Key': 'ann', 'Idempotency-Key': `key-${n}` };
      answers.push(await post('/v1/models/local/echo', input, headers));
      if (answers.at(-1)?.status === 507) break;
    }
    const refused = answers.at(-1);
    expect([refused?.status, await refused?.json()]).toEqual([
      507,
      { detail: expect.stringMatching('no room'), error_type: 'service_unavailable' },
    ]);
  });

  test('small changes are kept or 507, never 500, and nothing that was answered 200 is lost', async () => {
    fill();
    const kept: string[] = [];
    const statuses = new Set<number>();
    for (let n = 0; n < 400 && !statuses.has(507); n += 1) {
      const { status } = await post(`/settings/small-${n}`, JSON.stringify('y'.repeat(4000)));
      statuses.add(status);
      if (status === 200) kept.push(`small-${n}`);
      statuses.add((await post('/history', JSON.stringify({ clear: true }))).status);
    }
    expect(statuses).toEqual(new Set([200, 507]));
    await server.kill9();
    fs.rmSync(filler());
    server = await startHoldover({ dataDir: join(disk, 'data'), upstream: 'embedded' });
    expect(Object.keys(await getJson(`${server.url}/settings`))).toEqual(
      expect.arrayContaining(kept),
    );
  });

  test('a prompt that was refused for it does not run later, and takes no place in the queue', async () => {
    const queue = () => getJson(`${server.url}/queue`);
    const empty = { queue_running: [], queue_pending: [] };
    fill();
    const refused = await post('/prompt', heavyPrompt());
    expect(refused.status).toBe(507);
    expect(await queue()).toEqual(empty);
    fs.rmSync(filler());
    await server.kill9();
    server = await startHoldover({ dataDir: join(disk, 'data'), upstream: 'embedded' });
    expect(await queue()).toEqual(empty);
    expect(await getJson(`${server.url}/history`)).toEqual({});
    const accepted: string[] = [];
    for (let n = 0; n < 40; n += 1) {
      fill();
      // There is room for some of its records.
      fs.truncateSync(filler(), fs.statSync(filler()).size - (n % 10) * 15_000);
      const workflow = 'y'.repeat((n % 7) * 10_000);
      const body = {
        prompt: flat(),
        prompt_id: `p${n}`,
        extra_data: { extra_pnginfo: { workflow } },
      };
      const { status } = await post('/prompt', JSON.stringify(body));
      expect([200, 507]).toContain(status);
      if (status === 200) accepted.push(`p${n}`);
      fs.rmSync(filler());
    }
    await expect.poll(queue, { timeout: 20_000 }).toEqual(empty);
    const ended = Object.keys(await getJson(`${server.url}/history`));
    expect(ended.toSorted()).toEqual(accepted.toSorted());
  });
});

const noRedis = redisMissing();

describe.skipIf(noRedis !== '')(`on a Redis that is full${noRedis}`, () => {
  test('a change is 507, its queue is asked about once a second, and all works again with room', async () => {
    const redis = await startRedis();
    const links = openRedis(redis.url, { log: silentLogger() });
    const env = { HOLDOVER_LEDGER: redis.url };
    const server = await startHoldover({ upstream: 'embedded', env });
    const send = () =>
      fetch(`${server.url}/settings/a`, { method: 'POST', headers: JSON_TYPE, body: '1' });
    await links.commands.config('SET', 'maxmemory', '1');
    const answer = await send();
    expect([answer.status, await answer.json()]).toMatchObject([
      507,
      { error: { type: 'insufficient_storage' } },
    ]);
    await links.commands.config('RESETSTAT');
    await delay(3000);
    const stats = await links.commands.info('errorstats');
    const refused = Number(/errorstat_OOM:count=(\d+)/.exec(stats)?.[1] ?? 0);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(100);
    await links.commands.config('SET', 'maxmemory', '0');
    expect((await send()).status).toBe(200);
    const body = JSON.stringify({ prompt: flat(), prompt_id: 'with-room' });
    await fetch(`${server.url}/prompt`, { method: 'POST', headers: JSON_TYPE, body });
    const ended = async () =>
      Object.keys((await getJson(`${server.url}/history`)) as Record<string, unknown>);
    await expect.poll(ended, { timeout: 15_000 }).toEqual(['with-room']);
    await server.dispose();
    await links.close();
    await redis.dispose();
  });
});
