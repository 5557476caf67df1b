// Passing through when one side breaks off or sends nonsense: reported once, never hidden.
import { EventEmitter, once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { dial, requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Handler, type Origin, bytes, openBehindOrigin } from './origin.ts';

let origin: Origin;
let holdover: Holdover;
let close: () => Promise<void>;

beforeAll(async () => void ({ origin, holdover, close } = await openBehindOrigin()));
afterAll(() => close());
afterEach(() => expectHealthy(holdover));

const errorOf = (body: string): { code: string; message: string } => JSON.parse(body).error;

describe('a service that cannot be reached is reported from one that was lost', () => {
  async function behind(url: string, limits = {}) {
    const args = ['--upstream', url, '--limits', JSON.stringify({ upstream: limits })];
    return startHoldover({ upstream: 'embedded', args });
  }

  test('without a server: GET and POST are 500 upstream_error, to be tried again', async () => {
    const alone = await behind('http://127.0.0.1:9');
    onTestFinished(() => alone.dispose());
    for (const [method, body] of [
      ['GET', ''],
      ['POST', '{"workflow":{}}'],
    ] as const) {
      const answer = await say(alone.port, requestText('/api/v2/jobs', { method, body }));
      expect([method, answer.status]).toEqual([method, 500]);
      expect(answer.headers['retry-after']).toMatch(/^[1-9]$/);
      expect(JSON.parse(answer.body)).toEqual({
        error: { code: 'upstream_error', message: expect.any(String), details: null },
      });
      expect(answer.raw).not.toMatch(/127\.0\.0\.1|:9\b|ECONN/);
    }
  });

  test('a name that leads nowhere', () => expectUnreachable('http://no-such-host.invalid'));

  test('a handshake that never ends', async () => {
    const silent: Server = createServer((socket) => void socket.on('error', () => {}));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    await expectUnreachable(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    silent.close();
  });

  async function expectUnreachable(url: string): Promise<void> {
    const alone = await behind(url, { connectTimeoutMs: 300, discoverTimeoutMs: 300 });
    onTestFinished(() => alone.dispose());
    const answer = await say(alone.port, requestText('/api/v2/jobs'));
    expect(answer.status).toBe(500);
    expect(errorOf(answer.body).code).toBe('upstream_error');
    expect(answer.raw).not.toMatch(/no-such-host|127\.0\.0\.1/);
  }

  const hang: Handler = () => {};
  test.each<[string, Handler]>([
    ['ends', (req) => void req.socket.end()],
    ['resets', (req) => void req.socket.resetAndDestroy()],
    ['says nothing for too long', hang],
    ['speaks no HTTP', bytes('NOT HTTP AT ALL', '', '')],
    ['upgrades unasked', bytes('HTTP/1.1 101 X', 'Connection: Upgrade', 'Upgrade: x', '', '')],
    ['sends a status that is none', bytes('HTTP/1.1 099 Odd', 'Content-Length: 0', '', '')],
    ['sends a header without end', bytes('HTTP/1.1 200 OK', `X: ${'x'.repeat(70_000)}`, '', '')],
    [
      'sends a header that is none',
      bytes('HTTP/1.1 200 OK', 'X: a\0b', 'Content-Length: 0', '', ''),
    ],
    [
      'sends two lengths',
      bytes('HTTP/1.1 200 OK', 'Content-Length: 1', 'Content-Length: 2', '', ''),
    ],
    ['breaks off in its head', bytes('HTTP/1.1 200 OK', 'X: a')],
  ])('one that %s is 500 upstream_error, and is not asked again', async (what, handler) => {
    const path = `/lost/${what.replaceAll(' ', '-')}`;
    origin.on(path, handler);
    for (const method of ['GET', 'POST']) {
      const before = origin.heard.length;
      const body = method === 'POST' ? '{"a":1}' : '';
      const answer = await say(holdover.port, requestText(`/api/v2${path}`, { method, body }));
      expect([method, answer.status]).toEqual([method, 500]);
      const error = errorOf(answer.body);
      expect(error.code).toBe('upstream_error');
      expect(/may have taken effect/.test(error.message)).toBe(method === 'POST');
      expect(answer.raw).not.toContain(String(origin.port));
      expect(origin.heard.length).toBe(before + 1);
    }
  });
});

describe('an answer that breaks off is never a whole one', () => {
  const head = 'HTTP/1.1 200 OK';
  test.each([
    ['a length', [head, 'Content-Length: 100', '', 'part']],
    ['chunks', [head, 'Transfer-Encoding: chunked', '', '4', 'part', '']],
    ['a chunk', [head, 'Transfer-Encoding: chunked', '', '64', 'part']],
  ] as [string, [string, ...string[]]][])('in the middle of %s', async (what, lines) => {
    const path = `/cut-${what.replace(' ', '-')}`;
    origin.on(path, bytes(...lines));
    const answer = await say(holdover.port, requestText(`/api/v2${path}`));
    expect(answer.status).toBe(200);
    expect(answer.raw).toContain('part');
    expect(answer.raw).not.toMatch(/\r\n0\r\n/);
    expect(answer.raw).not.toContain('HTTP/1.1 400');
    await expect(fetch(`${holdover.url}/api/v2${path}`).then((r) => r.text())).rejects.toThrow();
  });

  test('an HTTP/1.0 client, which takes any end for the end, sees a reset', async () => {
    origin.on('/cut-old', (req) => {
      req.socket.write(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n`);
      setTimeout(() => req.socket.destroy(), 100);
    });
    const wire = await dial(holdover.port);
    const failed = once(wire.socket, 'error');
    wire.send(requestText('/api/v2/cut-old').replace('HTTP/1.1', 'HTTP/1.0'));
    expect((await failed)[0].code).toBe('ECONNRESET');
  });

  test('one that stalls is cut off, one that trickles is not', async () => {
    origin.on('/stall', (_req, res) => res.write('part'));
    origin.on('/trickle', (_req, res) => {
      let left = 6;
      const timer = setInterval(() => {
        res.write('.');
        left -= 1;
        if (left === 0) res.end(() => clearInterval(timer));
      }, 300);
    });
    await expect(fetch(`${holdover.url}/api/v2/stall`).then((r) => r.text())).rejects.toThrow();
    expect(await (await fetch(`${holdover.url}/api/v2/trickle`)).text()).toBe('......');
  });
});

describe('a job that a service calls expired', () => {
  test.each([
    ['is read once more, and its real state passed on', ['expired', 'running'], 'running'],
    ['is expired when it says so again', ['expired', 'expired'], 'expired'],
    ['is read once when it says another thing', ['succeeded'], 'succeeded'],
  ])('%s', async (_what, states, expected) => {
    const answers = [...states];
    origin.on('/jobs/moved', (_req, res) => {
      const body = JSON.stringify({ id: 'moved', status: answers.shift() });
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length });
      res.end(body);
    });
    const answer = await say(holdover.port, requestText('/api/v2/jobs/moved'));
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      200,
      { id: 'moved', status: expected },
    ]);
    expect(answers).toEqual([]);
  });
});

describe('a client that leaves takes its call along', () => {
  /** It waits for ever, so that nothing else can end a call. */
  let patient: Holdover;
  beforeAll(async () => {
    patient = await startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url] });
  });
  afterAll(() => patient.dispose());

  /** Resolves when the service has lost the connection of this call. */
  function held(path: string, start: Handler): { begun: Promise<unknown>; lost: Promise<unknown> } {
    const signs = new EventEmitter();
    origin.on(path, (req, res) => {
      req.socket.once('close', () => signs.emit('lost'));
      start(req, res);
      signs.emit('begun');
    });
    return { begun: once(signs, 'begun'), lost: once(signs, 'lost') };
  }

  test.each([
    ['GET', ''],
    ['POST', '{"a":1}'],
  ])('before the answer, its own %s long complete', async (method, body) => {
    const { begun, lost } = held(`/wait-${method}`, (req) => void req.resume());
    const wire = await dial(patient.port);
    wire.send(requestText(`/api/v2/wait-${method}`, { method, body }));
    await begun;
    wire.socket.destroy();
    await lost;
    const line = `"method":"${method}","url":"/api/v2/wait-${method}","status":499`;
    await expect.poll(() => patient.log()).toContain(line);
  });

  test('in the middle of the answer', async () => {
    const { begun, lost } = held('/more', (_req, res) => void res.write('data: 1\n\n'));
    const wire = await dial(patient.port);
    wire.send(requestText('/api/v2/more'));
    await begun;
    await wire.until('data: 1');
    wire.reset();
    await lost;
  });

  test('in the middle of its upload, which is never a whole one', async () => {
    let seen: IncomingMessage | undefined;
    const { begun, lost } = held('/upload', (req) => void (seen = req).resume());
    const wire = await dial(patient.port);
    wire.send(
      `${requestText('/api/v2/upload', { method: 'POST', headers: ['Content-Length: 1000000'] })}part`,
    );
    await begun;
    wire.reset();
    await lost;
    expect(seen?.complete).toBe(false);
  });

  test('a crowd of them leaves nothing behind', async () => {
    const open = new Set<Socket>();
    let begun = 0;
    origin.on('/crowd', ({ socket }) => {
      begun += 1;
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
    const wires = await Promise.all(Array.from({ length: 50 }, () => dial(patient.port)));
    for (const wire of wires) wire.send(requestText('/api/v2/crowd'));
    await expect.poll(() => begun, { timeout: 10_000 }).toBe(50);
    for (const wire of wires) wire.reset();
    await expect.poll(() => open.size, { timeout: 10_000 }).toBe(0);
  });
});

describe('one connection serves many calls', () => {
  test('and one that was closed meanwhile none', async () => {
    const opened = new Set<Socket>();
    origin.on('/again', (req, res) => {
      opened.add(req.socket);
      res.end('x');
    });
    const call = () => say(holdover.port, requestText('/api/v2/again'));
    for (let i = 0; i < 5; i += 1) expect((await call()).status).toBe(200);
    expect(opened.size).toBe(1);
    for (const socket of origin.sockets) socket.destroy();
    await expect.poll(() => origin.sockets.size).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await call()).status).toBe(200);
  });

  test('an answer before the end of the upload reaches the client, whose next call is served', async () => {
    origin.on('/full', (req, res) => {
      req.resume();
      res.writeHead(413, { 'Content-Type': 'text/plain' }).end('too much');
    });
    const wire = await dial(holdover.port);
    const headers = ['Content-Length: 3000000', 'Connection: keep-alive'];
    wire.send(requestText('/api/v2/full', { method: 'POST', headers }));
    wire.send(Buffer.alloc(1_000_000));
    expect((await wire.until('too much')).status).toBe(413);
    wire.send(Buffer.alloc(2_000_000));
    wire.send(requestText('/api/v2/echo?next'));
    expect((await wire.answer()).raw).toContain('/api/v2/echo?next');
  });

  test('after a lost upload the client hears why', async () => {
    origin.on('/drop', (req) => void req.socket.resetAndDestroy());
    const call = request(`${holdover.url}/api/v2/drop`, { method: 'POST' });
    call.on('error', () => {});
    call.write(Buffer.alloc(1_000_000));
    const [answer] = (await once(call, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(500);
    call.destroy();
  });
});
