// The first frame after an upgrade leaves later than the 101, but with the next answer to its user.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { V1Message } from '../../src/protocol/v1.ts';
import { createPublicAddresses } from '../../src/http/public-address.ts';
import { createDialects } from '../../src/dialects/dialect.ts';
import { Hub } from '../../src/sockets/hub.ts';
import { Deprecation } from '../../src/migration/deprecation.ts';
import { createUpgrade } from '../../src/v1/upgrade.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import {
  type Wire,
  closeCode,
  dial,
  requestText,
  say,
  upgradeText,
  wsFrame,
} from '../support/clients/raw-socket.ts';
import { flat } from '../support/graphs/workflows.ts';

const SCRIPT = fileURLToPath(new URL('../support/scripts/drops_surplus.py', import.meta.url));
const HOLD_MS = 20;
const TEXT = 1;

let remaining = 0;

type Setup = { readonly hub: Hub; readonly port: number; readonly server: Server };
const opened: { readonly setups: Setup[]; readonly wires: Wire[] } = { setups: [], wires: [] };

afterEach(() => {
  vi.useRealTimers();
  for (const wire of opened.wires.splice(0)) wire.reset();
  for (const { hub, server } of opened.setups.splice(0)) {
    hub.close();
    server.close();
  }
});

/** A hub behind a real HTTP server in this process; timers stand still. */
async function listen(more: { readonly whenCurrent?: () => Promise<void> } = {}): Promise<Setup> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  remaining = 0;
  const hub = new Hub({ remaining: () => remaining, serverFlags: {}, previewMethod: 'auto' });
  const deps = {
    hub,
    auth: {
      guard: () => undefined,
      dialects: createDialects('auto'),
      addresses: createPublicAddresses(),
      authenticate: async () => ({ user: 'user' }),
    },
    deprecation: new Deprecation({
      deprecatedAtMs: 0,
      sunsetAtMs: undefined,
      brownouts: [],
      now: Date.now,
      countCall: () => {},
    }),
    log: silentLogger(),
    limits: { maxSockets: 10, maxSocketsPerUser: 10 },
    ...more,
  };
  const server = createServer();
  server.on('upgrade', createUpgrade(deps));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const setup = { hub, server, port: (server.address() as AddressInfo).port };
  opened.setups.push(setup);
  return setup;
}

const CHANNEL = { user: 'user', clientId: 'raw', promptId: 'p' } as const;
const started = (node: string): V1Message =>
  ({
    type: 'executing',
    data: { node, display_node: node, prompt_id: 'p' },
  }) as unknown as V1Message;

/** Says the handshake, and lists the chunks as they arrive. */
async function connect({ hub, port }: Setup): Promise<{ wire: Wire; chunks: Buffer[] }> {
  const wire = await dial(port);
  opened.wires.push(wire);
  const chunks: Buffer[] = [];
  wire.socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  wire.send(upgradeText('/ws?clientId=raw'));
  await turnsUntil(() => hub.count('user') > 0);
  await wire.until('\r\n\r\n');
  return { wire, chunks };
}

/** Many turns: whatever would be written by now has arrived. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

async function turnsUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

/** The types of the JSON frames in these bytes; `executing` is followed by its node. */
function typesOf(bytes: Buffer): string[] {
  return [...bytes.toString().matchAll(/"type": "(\w+)"(?:, "data": \{"node": "(\w+)")?/g)].map(
    ([, type, node]) => (node === undefined ? `${type}` : `${type} ${node}`),
  );
}

function countsIn(text: string): number[] {
  return [...text.matchAll(/"queue_remaining": (\d+)/g)].map(([, count]) => Number(count));
}

describe('after an upgrade', () => {
  test('the 101 comes alone, then the first frame alone, then what was missed', async () => {
    const setup = await listen();
    const channel = setup.hub.channels.open(CHANNEL);
    for (const node of ['1', '2']) channel.send({ kind: 'json', message: started(node) }, 0);
    const { wire, chunks } = await connect(setup);
    await settle();
    expect(chunks.map(typesOf)).toEqual([[]]);
    expect(wire.socket.bytesRead).toBe(chunks[0]?.length);
    expect(chunks[0]?.toString()).toMatch(/^HTTP\/1\.1 101 [^]*\r\n\r\n$/);

    vi.advanceTimersByTime(HOLD_MS);
    await wire.until('"sid"');
    await settle();
    expect(chunks.slice(1).map(typesOf)[0]).toEqual(['status']);
    expect(typesOf(Buffer.concat(chunks))).toEqual(['status', 'executing 1', 'executing 2']);
  });

  test('frames of the gap follow in order, and the socket counts at once', async () => {
    const setup = await listen();
    const { wire } = await connect(setup);
    const channel = setup.hub.channels.open(CHANNEL);
    expect([setup.hub.count(), channel.hasListener()]).toEqual([1, true]);
    channel.send({ kind: 'json', message: started('1') }, 0);
    setup.hub.sendStatus('user');
    expect(channel.undelivered.size > 0).toBe(true);

    vi.advanceTimersByTime(HOLD_MS - 1);
    await settle();
    expect(typesOf(await wire.received(0))).toEqual([]);
    vi.advanceTimersByTime(1);
    channel.send({ kind: 'json', message: started('2') }, 0);
    await wire.until('"node": "2"');
    await settle();
    channel.send({ kind: 'json', message: started('3') }, 0);
    const all = ['status', 'executing 1', 'executing 2', 'executing 3'];
    expect(typesOf(Buffer.from((await wire.until('"node": "3"')).raw))).toEqual(all);
    expect(setup.hub.pendingBytes()).toBe(0);
  });

  test('the status says what is true when it leaves', async () => {
    const setup = await listen();
    const { wire } = await connect(setup);
    setup.hub.sendStatus('user');
    remaining = 3;
    setup.hub.sendStatus('user');
    vi.advanceTimersByTime(HOLD_MS);
    expect(countsIn((await wire.until('"sid"')).raw)).toEqual([3]);
  });

  test('a status of the turn between the first frame and the rest is not lost', async () => {
    const setup = await listen();
    const { wire } = await connect(setup);
    vi.advanceTimersByTime(HOLD_MS);
    remaining = 1;
    setup.hub.sendStatus('user');
    await settle();
    expect(countsIn(String(await wire.received(0)))).toEqual([0, 1]);
  });

  test('a new socket gets what others got in the gap: an older one of its client, and all of its user', async () => {
    const setup = await listen();
    const channel = setup.hub.channels.open(CHANNEL);
    const other = setup.hub.channels.open({ ...CHANNEL, clientId: 'other', promptId: 'q' });
    await connect(setup);
    vi.advanceTimersByTime(HOLD_MS);
    await settle();
    const { wire } = await connect(setup);
    const success: V1Message = {
      type: 'execution_success',
      data: { prompt_id: 'p', timestamp: 1 },
    };
    channel.send({ kind: 'json', message: success }, 0);
    other.send({ kind: 'text', nodeId: '2', text: 'hello' }, 0);
    setup.hub.sendTo('user', 'raw', started('3'));
    vi.advanceTimersByTime(HOLD_MS);
    await settle();
    const received = await wire.received(0);
    expect(typesOf(received)).toEqual(['status', 'execution_success', 'executing 3']);
    expect(String(received)).toContain('hello');
  });

  test('each of two new sockets of a client gets what comes in the gap', async () => {
    const setup = await listen();
    const wires = [(await connect(setup)).wire, (await connect(setup)).wire];
    setup.hub.channels.open(CHANNEL).send({ kind: 'text', nodeId: '2', text: 'hello' }, 0);
    vi.advanceTimersByTime(HOLD_MS);
    for (const wire of wires) expect((await wire.until('hello')).raw).toContain('"sid"');
  });

  test('an answer to its user sends all that waits, and the rest follows at once', async () => {
    const setup = await listen();
    const channel = setup.hub.channels.open(CHANNEL);
    channel.send({ kind: 'json', message: started('1') }, 0);
    const { wire, chunks } = await connect(setup);
    setup.hub.sendFirstFrames(() => 'another');
    setup.hub.sendFirstFrames(() => undefined);
    await settle();
    expect(chunks.map(typesOf)).toEqual([[]]);

    remaining = 1;
    setup.hub.sendFirstFrames(() => 'user');
    setup.hub.sendFirstFrames(() => 'user');
    channel.send({ kind: 'json', message: started('2') }, 0);
    const { raw } = await wire.until('"node": "2"');
    expect(typesOf(Buffer.from(raw))).toEqual(['status', 'executing 1', 'executing 2']);
    expect(countsIn(raw)).toEqual([1]);
    expect(setup.hub.pendingBytes()).toBe(0);
  });

  test('a client that negotiates at once gets its status first', async () => {
    const setup = await listen();
    const { wire } = await connect(setup);
    wire.send(wsFrame(TEXT, JSON.stringify({ type: 'feature_flags', data: {} })));
    await settle();
    vi.advanceTimersByTime(HOLD_MS);
    const heard = await wire.until('feature_flags');
    expect(typesOf(Buffer.from(heard.raw))).toEqual(['status', 'feature_flags']);
  });

  test.each<[string, (hub: Hub) => unknown, number]>([
    ['closed', (hub) => hub.close(), 1001],
    [
      'replaced by a newer one',
      (hub) => hub.makeRoom({ user: 'user', clientId: 'raw', where: 'user' }),
      1000,
    ],
  ])('a socket that is %s in the gap gets its frames before the close', async (_, end, code) => {
    const setup = await listen();
    const { wire } = await connect(setup);
    end(setup.hub);
    await wire.until('"sid"');
    await settle();
    const received = await wire.received(0);
    expect([typesOf(received), closeCode(received)]).toEqual([['status'], code]);
  });

  test('a large result does not delay what follows in the same turn', async () => {
    const setup = await listen();
    const { wire } = await connect(setup);
    vi.advanceTimersByTime(HOLD_MS);
    await wire.until('"sid"');
    const channel = setup.hub.channels.open(CHANNEL);
    const nodes = { nodeId: '1', displayNodeId: '1' };
    const bytes = new Uint8Array(300 * 1024);
    const picture = { ...nodes, mime: 'image/png', bytes, kind: 'result' } as const;
    channel.send({ kind: 'picture', picture }, 0);
    const state: V1Message = { type: 'progress_state', data: { prompt_id: 'p', nodes: {} } };
    channel.send({ kind: 'json', message: state }, 0);
    channel.send({ kind: 'json', message: started('2') }, 0);
    const { raw } = await wire.until('"executing"');
    expect(typesOf(Buffer.from(raw, 'latin1')).slice(1)).toEqual(['progress_state', 'executing 2']);
  });

  test('a client that leaves in the gap gets its frames on its next socket', async () => {
    const setup = await listen();
    const channel = setup.hub.channels.open(CHANNEL);
    channel.send({ kind: 'json', message: started('1') }, 0);
    const { wire } = await connect(setup);
    channel.send({ kind: 'json', message: started('2') }, 0);
    wire.reset();
    await turnsUntil(() => setup.hub.count() === 0);
    vi.advanceTimersByTime(HOLD_MS);
    const { wire: next } = await connect(setup);
    vi.advanceTimersByTime(HOLD_MS);
    const { raw } = await next.until('"node": "2"');
    expect(typesOf(Buffer.from(raw))).toEqual(['status', 'executing 1', 'executing 2']);
  });
});

describe('on a server', () => {
  const holdover = useHoldover({ upstream: 'embedded' });

  test.each<[string, Parameters<typeof requestText>[1]]>([
    ['/prompt', { method: 'POST', body: JSON.stringify({ prompt: flat() }) }],
    ['/prompt', { method: 'POST', body: '{}' }],
    ['/prompt', {}],
    ['/api/v2/jobs/unknown', {}],
    ['/v1/models', {}],
    ['/holdover/api/jobs', {}],
    ['/', {}],
    ['/no/such/path', {}],
  ])('its status is there with the answer of %s %j', async (path, call) => {
    const [socket, caller] = [await dial(holdover.port), await dial(holdover.port)];
    opened.wires.push(socket, caller);
    socket.send(upgradeText());
    await socket.until('\r\n\r\n');
    caller.send(requestText(path, call));
    await caller.until('\r\n\r\n');
    // Written before this answer, which is another user's and sends nothing to the socket.
    await say(holdover.port, requestText('/prompt', { headers: ['X-API-Key: another'] }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(String(await socket.received(0))).toContain('"sid"');
  });
});

test('they are due in the turn of the answer, after its bytes', async () => {
  const written: number[] = [];
  let turns = 0;
  const server = createHttpServer(
    (_request, response) => {
      response.end('{}');
      setImmediate(() => turns++);
    },
    { onAnswered: ({ socket }) => written.push(socket.bytesWritten, turns) },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const caller = await dial((server.address() as AddressInfo).port);
  opened.wires.push(caller);
  caller.send(requestText('/'));
  const { raw } = await caller.until('{}');
  server.close();
  expect(written).toEqual([raw.length, 0]);
});

/** A busy machine may let a client sleep for longer than any server waits; not three times. */
test(
  'a client that drops bytes after the 101 hears its status on every connect',
  { retry: 2 },
  async () => {
    const holdover = await startHoldover({ upstream: 'embedded' });
    try {
      const args = [SCRIPT, String(holdover.port), '40'];
      const { stdout } = await promisify(execFile)('python3', args, { timeout: 60_000 });
      expect(Number(stdout)).toBe(40);
    } finally {
      await holdover.dispose();
    }
  },
);

test('a socket is refused while the server stops: nothing is sent to it, or counts as received', async () => {
  const { hub, port } = await listen();
  const channel = hub.channels.open(CHANNEL);
  hub.close();
  channel.send({ kind: 'json', message: started('1') }, 0);
  const wire = await dial(port);
  opened.wires.push(wire);
  wire.send(upgradeText('/ws?clientId=raw'));
  expect((await wire.until('\r\n\r\n')).status).toBe(503);
  expect([hub.count(), channel.undelivered.size > 0]).toEqual([0, true]);
});

test('upgrades that become ready at the same moment share the places that are left', async () => {
  const waiting: (() => void)[] = [];
  const whenCurrent = () => new Promise<void>((resolve) => void waiting.push(resolve));
  const { hub, port } = await listen({ whenCurrent });
  const wires = await Promise.all(Array.from({ length: 14 }, () => dial(port)));
  opened.wires.push(...wires);
  wires.forEach((wire) => wire.send(upgradeText('/ws')));
  await turnsUntil(() => waiting.length === 14);
  waiting.forEach((resolve) => resolve());
  const answers = await Promise.all(wires.map((wire) => wire.until('\r\n\r\n')));
  expect(answers.filter(({ status }) => status === 503)).toHaveLength(4);
  expect(hub.count('user')).toBe(10);
});
