// Node writes deprecations to standard error, where operators take them for faults of Holdover.
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Holdover } from '../../support/processes/holdover.ts';
import { type Origin, openBehindOrigin } from './origin.ts';

let origin: Origin;
let holdover: Holdover;
let close: () => Promise<void>;

beforeAll(async () => void ({ origin, holdover, close } = await openBehindOrigin()));
afterAll(() => close());

test('nothing deprecated is used by an upgrade and by calls that are passed on', async () => {
  const socket = new WebSocket(`${holdover.wsUrl}/ws`);
  await once(socket, 'message');
  socket.close();

  origin.on('/stream', (_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: 1\n\n');
  });
  const echoed = await fetch(`${holdover.url}/api/v2/echo`, { method: 'POST', body: '{}' });
  const headers = { Accept: 'text/event-stream' };
  const streamed = await fetch(`${holdover.url}/api/v2/stream`, { headers });
  expect([echoed.status, await streamed.text()]).toEqual([200, 'data: 1\n\n']);

  await holdover.terminate();
  expect(holdover.log()).not.toMatch(/deprecat|\bDEP\d{4}\b/i);
});
