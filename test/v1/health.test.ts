import Koa from 'koa';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { ok, refuse } from '../../src/protocol/job-api.ts';
import { type NeededParts, healthRoutes } from '../../src/v1/health.ts';

let server: Server | undefined;
afterEach(() => server?.close());

const healthy = async () => ok({ status: 'healthy' as const, upstream: 'embedded' });
const usable = async (): Promise<undefined> => undefined;
const unusable = (): Promise<undefined> => Promise.reject(new Error('redis://:secret@host'));
const PARTS = {
  ledger: { kind: 'redis', check: usable },
  queue: { kind: 'redis', check: usable },
  files: { kind: 'folder', check: usable },
} as const satisfies NeededParts;

async function readiness(
  parts: NeededParts,
  health = healthy as () => Promise<any>,
  isStopping = () => false,
) {
  const app = new Koa();
  app.use(healthRoutes({ jobs: { health }, parts, isStopping }));
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`;
  const response = await fetch(url);
  return { status: response.status, body: await response.json() };
}

test('is ready when all parts are, in the members of 0.1 and one more', async () => {
  expect(await readiness(PARTS)).toEqual({
    status: 200,
    body: {
      status: 'ready',
      upstream: 'embedded',
      parts: {
        ledger: { status: 'ok', kind: 'redis' },
        queue: { status: 'ok', kind: 'redis' },
        files: { status: 'ok', kind: 'folder' },
        upstream: { status: 'ok', kind: 'embedded' },
      },
    },
  });
});

test.each(['ledger', 'queue', 'files'] as const)(
  'is not ready without its %s, and shows nothing of the reason',
  async (name) => {
    const { status, body } = await readiness({ ...PARTS, [name]: { kind: 'x', check: unusable } });
    expect(status).toBe(503);
    expect(body).toMatchObject({ status: 'not ready', reason: `${name}_unavailable` });
    expect(body.parts[name]).toEqual({ status: 'failed', kind: 'x', reason: 'unusable' });
    const others = Object.keys(body.parts).filter((other) => other !== name);
    expect(others.map((other) => body.parts[other].status)).toEqual(['ok', 'ok', 'ok']);
    expect(JSON.stringify(body)).not.toContain('secret');
  },
);

test('a part whose check throws at once or hangs has failed', async () => {
  const throws = (): never => {
    throw new Error('gone');
  };
  const hangs = () => new Promise<never>(() => {});
  const { body } = await readiness({
    ledger: { kind: 'sqlite', check: hangs },
    files: { kind: 'folder', check: throws },
  });
  expect(body.parts.ledger).toEqual({ status: 'failed', kind: 'sqlite', reason: 'no_answer' });
  expect(body.parts.files).toEqual({ status: 'failed', kind: 'folder', reason: 'unusable' });
});

test('names the refusal of the upstream first, as in 0.1', async () => {
  const refused = async () => refuse(503, 'upstream_unreachable', 'The service is away.');
  const parts = { ...PARTS, ledger: { kind: 'redis', check: unusable } };
  const { status, body } = await readiness(parts, refused);
  expect(status).toBe(503);
  expect(body.reason).toBe('upstream_unreachable');
  expect(body.parts.upstream).toEqual({ status: 'failed', reason: 'upstream_unreachable' });
});

test('a part says itself why it has failed, and its time limit is its own', async () => {
  const lost = async () => ({ status: 'failed', reason: 'lost' }) as const;
  const hangs = () => new Promise<never>(() => {});
  const began = performance.now();
  const { status, body } = await readiness({
    queue: { kind: 'redis', check: hangs, timeoutMs: 50 },
    files: { kind: 'bucket', check: lost },
  });
  expect(performance.now() - began).toBeLessThan(1500);
  expect([status, body.reason]).toEqual([503, 'queue_unavailable']);
  expect(body.parts.queue.reason).toBe('no_answer');
  expect(body.parts.files).toEqual({ status: 'failed', kind: 'bucket', reason: 'lost' });
});

test('is ready while a part is degraded, since another server would answer no better', async () => {
  const degraded = async () => ({ status: 'degraded', reason: 'no_worker' }) as const;
  const { status, body } = await readiness({ ...PARTS, queue: { kind: 'redis', check: degraded } });
  expect([status, body.status]).toEqual([200, 'ready']);
  expect(body.parts.queue).toEqual({ status: 'degraded', kind: 'redis', reason: 'no_worker' });
});
