// Matrix E, where there is an upstream in it, and F45: what a fault on one side may cost the other.
// Rows that are the same with an embedded engine are in test/hostile and test/restart: F50, F51,
// F53, F55.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { join } from 'node:path';
import { setTimeout as tick } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Hook, type Route, type WireJob, startSse } from '../support/upstreams/hostile-v2.ts';
import { footprint } from '../support/processes/invariants.ts';
import { finish, staysRunning } from '../support/upstreams/job-scripts.ts';
import { connect } from '../support/clients/v1-client.ts';
import { type Client, useSharedSetup, openOwnSetup } from './open.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const setup = useSharedSetup();

const theirs = (client: Client) => setup.upstream.of(client.key);

/** Changes what a running process may use. */
function limitOf(pid: number, limit: string): Promise<unknown> {
  return promisify(execFile)('prlimit', ['--pid', String(pid), `--${limit}`]);
}

test('F49 no descriptors left: who is there waits or is refused, and all is well when there are some again', async () => {
  const client = await setup.client();
  const { pid, port } = setup.holdover();
  const { files, sockets } = footprint(setup.holdover());
  const limits = readFileSync(`/proc/${pid}/limits`, 'utf8');
  const softLimit = /Max open files\s+(\d+)/.exec(limits)?.[1];
  await limitOf(pid, `nofile=${files + sockets + 8}:`);
  const crowd = Array.from({ length: 40 }, () => dial(port, '127.0.0.1').on('error', () => {}));
  await tick(300);
  const posting = client.post().then(
    ({ status }) => status,
    () => 'hung up',
  );
  const during = await Promise.race([posting, tick(1_500)]);
  expect([undefined, 'hung up', 200, 500, 502, 503]).toContain(during);
  for (const socket of crowd) socket.destroy();
  await limitOf(pid, `nofile=${softLimit}:`);
  await tick(100);
  const { promptId } = await client.post();
  await client.ended(promptId);
  await expect.poll(() => client.queue()).toEqual({ running: [], pending: [] });
});

test('F48 an end that finds the disk full is written when there is room again', async () => {
  const client = await setup.client();
  setup.upstream.script(staysRunning, client.key);
  const { promptId, marker } = await client.post({
    more: { extra_data: { big: 'x'.repeat(3_000_000) } },
  });
  const [job] = client.jobs(marker) as [WireJob];
  await expect.poll(() => job.status).toBe('running');
  const { pid } = setup.holdover();
  await limitOf(pid, 'fsize=4096:');
  finish(setup.upstream, job);
  await tick(700);
  expect((await client.queue()).running).toEqual([promptId]);
  await limitOf(pid, 'fsize=unlimited:');
  expect((await client.ended(promptId)).status.status_str).toBe('success');
  await client.socket.untilDone(promptId);
});

test('F52 a hundred sockets at once after a restart: all are let in, and hardly anything is asked upstream', async () => {
  const env = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };
  const own = await openOwnSetup({ env });
  own.upstream.script(staysRunning);
  const client = await own.client();
  await client.post();
  await own.restart();
  await expect.poll(() => own.upstream.streams.open).toBe(1);
  const asked = own.upstream.journal.length;
  const sockets = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      connect(own.holdover().wsUrl, { clientId: `storm-${i}`, headers: client.headers }),
    ),
  );
  await Promise.all(
    sockets.map((socket) => socket.until((f) => f.kind === 'text' && f.type === 'status')),
  );
  const polls = own.upstream.journal.slice(asked).filter(({ route }) => route !== 'get');
  expect(polls.length).toBeLessThanOrEqual(5);
  for (const { socket } of sockets) socket.terminate();
});

describe('F54 a kept connection whose other end has vanished', () => {
  test('costs a read another try, not its answer', async () => {
    const client = await setup.client();
    await client.ended((await client.post()).promptId);
    setup.proxy.set('up', { isBlackhole: true });
    const asked = client.ask('/api/job/nobodys/status');
    const stopping = client.say('/api/queue', { clear: true });
    await tick(100);
    setup.proxy.cut('rst');
    setup.proxy.restore();
    expect((await asked).status).toBe(404);
    expect((await stopping).status).toBe(200);
    await client.ended((await client.post()).promptId);
  });

  test('never makes a prompt run twice', async () => {
    const client = await setup.client();
    await client.ended((await client.post()).promptId);
    setup.proxy.set('up', { isBlackhole: true });
    const posting = client.post();
    await tick(250);
    setup.proxy.cut('rst');
    setup.proxy.restore();
    const { status, promptId, marker } = await posting;
    expect([200, 500]).toContain(status);
    await client.ended(promptId);
    expect(client.jobs(marker).length).toBeLessThanOrEqual(1);
  });
});

describe('a client that leaves', () => {
  test('F56 amid an upload: nothing goes upstream', async () => {
    const client = await setup.client();
    const socket = dial(setup.holdover().port, '127.0.0.1');
    await once(socket, 'connect');
    const head = '--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n';
    socket.write(
      `POST /upload/image HTTP/1.1\r\nHost: 127.0.0.1:${setup.holdover().port}\r\nX-API-Key: ${client.key}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000000\r\n\r\n${head}`,
    );
    socket.write(randomBytes(300_000));
    const spool = join(setup.holdover().dataDir, 'spool');
    await expect.poll(() => readdirSync(spool).length).toBeGreaterThan(0);
    socket.destroy();
    await expect.poll(() => readdirSync(spool)).toEqual([]);
    expect(theirs(client).requests('upload')).toEqual([]);
  });
});

/** Answers that are not even HTTP, or only nearly. */
const GARBAGE: readonly (readonly [string, string])[] = [
  ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}'],
  [
    'a length and chunks',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  ],
  [
    'a header of 40 KB',
    `HTTP/1.1 200 OK\r\nX-Big: ${'x'.repeat(40_000)}\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  [
    'a trailer',
    'HTTP/1.1 200 OK\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-End: 1\r\n\r\n',
  ],
  [
    'an upgrade without a request',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n',
  ],
  ['a bad chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n'],
  [
    'a compressed body without a request',
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x00\x01\x02',
  ],
  [
    'NUL bytes',
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0`,
  ],
];
const ROUTES: readonly Route[] = [
  'submit',
  'get',
  'events',
  'list',
  'cancel',
  'content',
  'upload',
  'byHash',
  'asset',
  'workflow',
];

describe('F45 an upstream that answers with', () => {
  test.each(GARBAGE)(
    '%s, to anything: the process lives, and others are served',
    async (_, bytes) => {
      const [hurt, other] = [await setup.client(), await setup.client()];
      const garbage: Hook = ({ req }) => void req.socket.end(bytes, 'latin1');
      const { promptId } = await hurt.post();
      await hurt.ended(promptId);
      for (const route of ROUTES) theirs(hurt).always(route, garbage);
      const form = new FormData();
      form.append('image', new Blob(['bytes']), 'a.png');
      const upload = fetch(`${setup.holdover().url}/upload/image`, {
        method: 'POST',
        body: form,
        headers: hurt.headers,
      });
      const [posted, viewed, uploaded] = await Promise.all([
        hurt.post(),
        hurt.ask('/view?filename=nothing.png'),
        upload,
        hurt.say('/interrupt'),
      ]);
      expect(posted.status).toBeGreaterThanOrEqual(500);
      expect(viewed.status).toBeGreaterThanOrEqual(400);
      expect(uploaded.status).toBeGreaterThanOrEqual(400);
      const fine = await other.post();
      expect((await other.ended(fine.promptId)).status.status_str).toBe('success');
    },
  );
});

// More than the connections that it may have.
test('I5 streams that are not read to their end do not pile up over forty prompts', async () => {
  const client = await setup.client();
  theirs(client).always('events', async (exchange) => {
    startSse(exchange.res);
    exchange.res.write(`: ${'x'.repeat(1_000)}\n\n`);
    await tick(20);
    finish(exchange.server, exchange.server.jobs.get(exchange.id) as WireJob);
    exchange.res.end();
  });
  setup.upstream.script(staysRunning, client.key);
  const posts = await Promise.all(Array.from({ length: 40 }, () => client.post()));
  for (const { promptId } of posts) await client.ended(promptId, 15_000);
  onTestFinished(() => expect(setup.upstream.streams.open).toBe(0));
});

test('I1 to I10 hold over all of it', () => setup.check());
