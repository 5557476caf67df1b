// perf-reliability.md 3.5 E: what a peer can do to /ws.
import { once } from 'node:events';
import { connect as connectTo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { toPythonText } from '../../src/protocol/python-json-text.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import {
  type Wire,
  closeCode,
  dial,
  say,
  upgradeText,
  wsFrame,
} from '../support/clients/raw-socket.ts';
import { CANARY, expectHealthy } from '../support/processes/expect-healthy.ts';
import { scrape } from '../support/processes/scrape.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

const PER_USER = 20;
const LIMIT = 60;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

let server: Holdover;

beforeAll(async () => {
  const limits = JSON.stringify({ socketsPerUser: PER_USER });
  const args = ['--max-sockets', String(LIMIT), '--limits', limits];
  server = await startHoldover({ args });
});
afterAll(() => server.dispose());
const wires: Wire[] = [];
afterEach(async () => {
  for (const wire of wires.splice(0)) wire.reset();
  await expectHealthy(server);
});

async function open(target = '/ws?clientId=raw'): Promise<Wire> {
  const wire = await dial(server.port);
  wires.push(wire);
  wire.send(upgradeText(target, { headers: { 'X-API-Key': CANARY } }));
  const { status } = await wire.until('"sid"');
  expect(status).toBe(101);
  return wire;
}

/** Everything until the server closes the connection; the peer never answers its close. */
async function ending(wire: Wire): Promise<Buffer> {
  await wire.answer();
  return wire.received(0);
}

const NO_SOCKET = 'There is no WebSocket at this path.';

describe('an upgrade is refused before it happens:', () => {
  test.each([
    ['POST', 405, { method: 'POST' }],
    ['without a key', 400, { headers: { 'Sec-WebSocket-Key': null } }],
    ['a key that is none', 400, { headers: { 'Sec-WebSocket-Key': 'abc' } }],
    ['version 12', 400, { headers: { 'Sec-WebSocket-Version': '12' } }],
    ['a subprotocol twice', 400, { headers: { 'Sec-WebSocket-Protocol': 'a, a' } }],
  ] as const)('%s is %i', async (_, status, options) => {
    const answer = await say(server.port, upgradeText('/ws', options));
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { message: expect.any(String) } });
    expect(answer.headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^[\w-]{36}$/),
      'x-content-type-options': 'nosniff',
    });
  });

  test.each([
    ['/', 404],
    ['/prompt', 404],
    ['/ws/', 404],
    ['//ws', 404],
    ['/api/v2/ws', 404],
    ['/WS', 404],
    [`/ws?clientId=${'x'.repeat(10_000)}`, 400],
    ['/ws?clientId=a%0d%0ab', 400],
    ['/ws?clientId=%00', 400],
    ['/ws?clientId=%7f', 400],
    [`/ws?clientId=${'x'.repeat(129)}`, 400],
    [`/ws?clientId=${'x'.repeat(70_000)}`, 431],
  ])('%.40s is %i', async (target, status) => {
    expect((await say(server.port, upgradeText(target))).status).toBe(status);
  });

  test.each([
    ['/ws', { method: 'POST' }, 'A WebSocket is opened with GET.'],
    [
      `/ws?clientId=${'x'.repeat(129)}`,
      {},
      '"clientId" must be a text of at most 128 printable characters.',
    ],
  ])('%.30s in words that name the reason', async (target, options, message) => {
    const answer = await say(server.port, upgradeText(target, options));
    expect(JSON.parse(answer.body)).toMatchObject({ error: { message } });
  });

  test('405 says which methods there are, and HEAD gets no body', async () => {
    const post = await say(server.port, upgradeText('/ws', { method: 'POST' }));
    const head = await say(server.port, upgradeText('/ws', { method: 'HEAD' }));
    expect([post.headers['allow'], head.headers['allow']]).toEqual(['GET,HEAD', 'GET,HEAD']);
    expect([head.body, head.headers['content-length']]).toEqual(['', String(post.body.length)]);
  });

  test.each([
    ['/api/userdata/a?token=k', {}, 404, 'text/plain; charset=utf-8', NO_SOCKET],
    ['/queue', {}, 404, 'application/json; charset=utf-8', { error: { type: 'not_found' } }],
    ['/api/v2/jobs', {}, 404, 'application/json; charset=utf-8', { error: { code: 'not_found' } }],
    [
      '/v1/models',
      {},
      404,
      'application/json',
      { detail: NO_SOCKET, error_type: 'model_not_found' },
    ],
    [
      '/api/v2/jobs',
      { Origin: 'https://evil' },
      403,
      'application/json; charset=utf-8',
      { error: { code: 'forbidden', details: { rule: 'foreign_origin' } } },
    ],
    [
      '/v1/models',
      { Origin: 'https://evil' },
      403,
      'application/json',
      { error_type: 'forbidden' },
    ],
  ] as const)('%s in the form of its API', async (target, headers, status, type, body) => {
    const answer = await say(server.port, upgradeText(target, { headers }));
    expect([answer.status, answer.headers['content-type']]).toEqual([status, type]);
    const found = type.startsWith('text') ? answer.body : JSON.parse(answer.body);
    expect({ found }).toMatchObject({ found: body });
  });

  test('without the upgrade header it is 400 in words', async () => {
    const answer = await fetch(`${server.url}/ws`);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toMatch(/WebSocket/);
  });
});

test('a refused upgrade keeps no connection of a peer that never closes its side', async () => {
  const socket = connectTo({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  socket.resume().write(upgradeText('/nope'));
  await once(socket, 'end');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  // The answer to what comes after the end is a reset.
  const pokes = setInterval(() => socket.write('x'), 50);
  await closed.finally(() => clearInterval(pokes));
});

test.each([
  ['/ws?clientId=a&clientId=b', 'a'],
  ['/ws?clientId=a%20b', 'a b'],
  ['/ws?clientId=%E7%8C%AB', '猫'],
  ['/ws?clientId=__proto__', '__proto__'],
  ['/api/ws?clientId=alias', 'alias'],
  ['/ws?clientId=a?b', 'a?b'],
  ['http://127.0.0.1/ws?clientId=address', 'address'],
])('%s is the client id %s', async (target, sid) => {
  const wire = await open(target);
  expect((await wire.received(0)).toString()).toContain(
    `"sid": ${toPythonText(JSON.stringify(sid))}`,
  );
  wire.reset();
});

test('an empty list of subprotocols is none, as in v1', async () => {
  const wire = await dial(server.port);
  wire.send(upgradeText('/ws', { headers: { 'Sec-WebSocket-Protocol': '' } }));
  expect((await wire.received(12)).toString()).toContain('HTTP/1.1 101 ');
  wire.reset();
});

test.each(['/ws', '/ws?clientId=', '/ws?clientID=a'])(
  '%s gets a client id of its own',
  async (target) => {
    const wire = await open(target);
    expect((await wire.received(0)).toString()).toMatch(/"sid": "[0-9a-f]{32}"/);
    wire.reset();
  },
);

describe('a socket is closed', () => {
  test.each([
    ['1002', 'for a frame without a mask', [wsFrame(TEXT, 'x', { masked: false })]],
    ['1002', 'for a reserved bit', [wsFrame(TEXT, 'x', { rsv: 4 })]],
    ['1002', 'for a reserved opcode', [wsFrame(3, 'x')]],
    ['1002', 'for a control frame of 126 bytes', [wsFrame(PING, 'x'.repeat(126))]],
    ['1002', 'for a control frame in fragments', [wsFrame(PING, 'x', { fin: false })]],
    ['1002', 'for a continuation of nothing', [wsFrame(0, 'x')]],
    [
      '1002',
      'for a new message amid another',
      [wsFrame(TEXT, 'x', { fin: false }), wsFrame(TEXT, 'y')],
    ],
    ['1002', 'for a close of one byte', [wsFrame(CLOSE, 'x')]],
    ['1002', 'for the close code 1006', [wsFrame(CLOSE, Buffer.from([0x03, 0xee]))]],
    ['1007', 'for text that is no UTF-8', [wsFrame(TEXT, Buffer.from([0xff, 0xfe]))]],
    [
      '1007',
      'for a close reason that is no UTF-8',
      [wsFrame(CLOSE, Buffer.from([0x03, 0xe8, 0xff]))],
    ],
    [
      '1009',
      'for a message announced as 5 MiB, before it comes',
      [wsFrame(BINARY, '', { declare: 5 << 20 })],
    ],
    ['1009', 'for a message announced as 2^62 bytes', [wsFrame(BINARY, '', { declare: 2 ** 52 })]],
    [
      '1008',
      'for more fragments than any client sends',
      [
        wsFrame(TEXT, 'x', { fin: false }),
        ...Array.from({ length: 100 }, () => wsFrame(0, 'x', { fin: false })),
      ],
    ],
    ['1008', 'for a flood of messages', Array.from({ length: 600 }, () => wsFrame(TEXT, '{}'))],
    ['1000', 'when it says so', [wsFrame(CLOSE, Buffer.from([0x03, 0xe8]))]],
  ] as const)('with %s %s', async (code, _, frames) => {
    const wire = await open();
    wire.send(Buffer.concat(frames));
    const received = await Promise.race([
      ending(wire),
      until(wire, (bytes) => closeCode(bytes) !== undefined),
    ]);
    expect(closeCode(received)).toBe(Number(code));
    wire.reset();
  });

  test('at once when it floods us with pings', async () => {
    const wire = await open();
    wire.send(Buffer.concat(Array.from({ length: 2000 }, () => wsFrame(PING, 'x'))));
    await wire.answer();
  });
});

describe('a socket lives on after', () => {
  test.each([
    ['words', 'hello'],
    ['nothing', ''],
    ['depth', '['.repeat(100_000)],
    [
      'depth in data',
      `{"type":"feature_flags","data":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}`,
    ],
    ['null', 'null'],
    ['a list', '[{"type":"feature_flags"}]'],
    ['a type that is none', '{"type":{}}'],
    [
      '__proto__',
      '{"__proto__":{"type":"feature_flags","data":{"supports_preview_metadata":true}}}',
    ],
    ['1 MB of digits', `{"type":${'9'.repeat(1_000_000)}}`],
  ])('%s', async (_, text) => {
    const wire = await open();
    wire.send(wsFrame(TEXT, text));
    wire.send(wsFrame(PONG, 'unasked'));
    wire.send(wsFrame(PING, 'still here'));
    expect((await wire.until('still here')).raw).toContain('still here');
    wire.reset();
  });

  test.each(['"x"', '[]', 'null', '7', 'true'])(
    'flags that are %s, and is told ours',
    async (data) => {
      const wire = await open();
      wire.send(wsFrame(TEXT, `{"type":"feature_flags","data":${data}}`));
      expect((await wire.until('"feature_flags"')).raw).toContain('supports_preview_metadata');
      wire.reset();
    },
  );
});

test('a user holds so many sockets and no more, and others still get theirs', async () => {
  const clients: WebSocket[] = [];
  for (let i = 0; i < PER_USER; i++) clients.push(await webSocket('greedy'));
  const refused = await say(
    server.port,
    upgradeText('/ws', { headers: { 'X-API-Key': 'greedy' } }),
  );
  expect(refused.status).toBe(503);
  clients.push(await webSocket('modest'));
  clients[0]?.terminate();
  await expect.poll(() => tryUpgrade('greedy')).toBe(101);
  await letGo(clients);
});

// comfy2go opens a socket with its one client id for each prompt, and closes none.
test('where a user can hold no more, a socket takes the place of the oldest with its client id', async () => {
  const clients: WebSocket[] = [];
  for (let i = 0; i < PER_USER - 1; i++) clients.push(await webSocket('greedy', 'one id'));
  const other = await webSocket('greedy', 'another id');
  const oldest = once(clients[0]!, 'close');
  const newest = await webSocket('greedy', 'one id');
  expect((await oldest)[0]).toBe(1000);
  expect(await tryUpgrade('greedy')).toBe(503);
  const states = [...clients.slice(1), other, newest].map(({ readyState }) => readyState);
  expect(states).toEqual(states.map(() => WebSocket.OPEN));
  await letGo([...clients, other, newest]);
  expect(await tryUpgrade('greedy')).toBe(101);
});

test('so many sockets are held in all; the next is 503 before the upgrade, and room is made again', async () => {
  const clients: WebSocket[] = [];
  for (let i = 0; i < LIMIT; i++) clients.push(await webSocket(`user ${i % 10}`));
  expect(await tryUpgrade('newcomer')).toBe(503);
  expect((await fetch(`${server.url}/queue`)).status).toBe(200);
  await letGo(clients);
  expect(await tryUpgrade('newcomer')).toBe(101);
});

test('a peer that vanishes amid a run takes nothing from the others', async () => {
  const stays = await connect(server.wsUrl, { clientId: 'shared' });
  const vanishes = await dial(server.port);
  vanishes.send(upgradeText('/ws?clientId=shared'));
  await vanishes.until('"sid"');
  const { body } = await postPrompt(server.url, { prompt: flat(), client_id: 'shared' });
  vanishes.reset();
  await stays.untilDone(body.prompt_id);
  expect(stays.outline(body.prompt_id)).toContain('execution_success');
  await stays.close();
});

test('an upgrade cut off in its middle leaves nothing', async () => {
  const text = upgradeText('/ws');
  for (const at of [1, 20, text.length - 2]) {
    const wire = await dial(server.port);
    wire.send(text.slice(0, at));
    wire.reset();
  }
});

async function webSocket(user: string, clientId?: string): Promise<WebSocket> {
  const query = clientId === undefined ? '' : `?${new URLSearchParams({ clientId })}`;
  const socket = new WebSocket(`${server.wsUrl}/ws${query}`, { headers: { 'X-API-Key': user } });
  await once(socket, 'open');
  return socket;
}

/** Ends the sockets, and waits until the server holds none, so that none counts in the next test. */
async function letGo(clients: readonly WebSocket[]): Promise<void> {
  for (const client of clients) client.terminate();
  const held = async () => (await scrape(server.url)).of('holdover_websockets');
  await expect.poll(held, { timeout: 10_000 }).toBe(0);
}

async function tryUpgrade(user: string): Promise<number> {
  const wire = await dial(server.port);
  wire.send(upgradeText('/ws', { headers: { 'X-API-Key': user } }));
  const { status } = await wire.until('\r\n\r\n');
  wire.reset();
  return status;
}

async function until(wire: Wire, test: (bytes: Buffer) => boolean): Promise<Buffer> {
  for (let length = 1; ; length++) {
    const bytes = await wire.received(length);
    if (test(bytes) || wire.socket.closed) return bytes;
    length = bytes.length;
  }
}
