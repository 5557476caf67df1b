import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { uploadInput } from '../support/clients/client-helpers.ts';
import type { Holdover } from '../support/processes/holdover.ts';

/** Broken and hostile clients beside a load; none of them may harm the other clients. */
export type Hostile = {
  /** How often each kind was tried. */
  readonly tried: Readonly<Record<string, number>>;
  /** Answers that no input may get. */
  readonly problems: readonly string[];
  /** Resolves when the last of it is over. */
  stop(): Promise<void>;
};

type Random = () => number;
type Attack = (context: AttackContext) => Promise<void>;

type AttackContext = {
  readonly port: number;
  readonly random: Random;
  readonly isOver: () => boolean;
  /** Says one request and takes the status of its answer; 0: the connection was closed. */
  readonly sendRequest: (head: string, body?: string | Uint8Array) => Promise<number>;
};

/** A user of its own: what it does shows in no other accounts. */
const KEY = 'hostile-key';
const PAUSE_MS = 200;
/** A connection that never reads is held for so long. */
const HELD_MS = 10_000;
const ANSWER_WITHIN_MS = 60_000;
const MEBIBYTE = 1024 * 1024;
/** For downloads that are cut off. */
const LARGE = { name: 'large.bin', bytes: 4 * MEBIBYTE } as const;

const JSON_ROUTES = [
  '/prompt',
  '/queue',
  '/history',
  '/interrupt',
  '/settings',
  '/api/v2/jobs',
] as const;
const BAD_JSON = [
  '',
  '{',
  '[1,2',
  '{"prompt":',
  '{"prompt":{},"prompt":}',
  'nul',
  '"\\ud800"',
  '{"a":1e}',
  '\u0000',
  '{"prompt":[]}',
  '{"prompt":{"1":null}}',
  '{"prompt":{"1":{"class_type":7}}}',
] as const;
const BAD_FORMS = [
  ['multipart/form-data', 'no boundary'],
  ['multipart/form-data; boundary=b', '--b\r\nContent-Disposition: form-data; name="image"'],
  ['multipart/form-data; boundary=b', '--b\r\n: : :\r\n\r\n\r\n--b--\r\n'],
  ['multipart/form-data; boundary=b', 'not a part\r\n--b--\r\n'],
  [
    'multipart/form-data; boundary=b',
    '--b\r\nContent-Disposition: form-data; name="image"; filename="../../x"\r\n\r\nx\r\n--b--\r\n',
  ],
] as const;

export async function startHostile(holdover: Holdover, random: Random): Promise<Hostile> {
  const headers = { 'X-API-Key': KEY };
  await uploadInput(holdover.url, { name: LARGE.name, bytes: randomBytes(LARGE.bytes) }, headers);
  const tried: Record<string, number> = {};
  const problems: string[] = [];
  const under = new Set<Promise<void>>();
  let isOver = false;
  const context: AttackContext = {
    port: holdover.port,
    random,
    isOver: () => isOver,
    async sendRequest(head, body) {
      const status = await statusOf(holdover.port, head, body);
      const isRefused = status === 0 || (status >= 200 && status < 500) || BUSY.has(status);
      if (!isRefused) problems.push(`${head.split('\r\n')[0]} is answered ${status}`);
      return status;
    },
  };

  function begin(name: string, attack: Attack): void {
    tried[name] = (tried[name] ?? 0) + 1;
    const task = attack(context)
      .catch((error: unknown) => void problems.push(`${name}: ${String(error)}`))
      .finally(() => under.delete(task));
    under.add(task);
  }

  async function goOn(): Promise<void> {
    const attacks = Object.entries(ATTACKS);
    // All kinds at once: what a process will hold at most it has held by then.
    for (const [name, attack] of attacks) begin(name, attack);
    while (!isOver) {
      await delay(PAUSE_MS);
      const [name, attack] = attacks[Math.floor(random() * attacks.length)] ?? [];
      if (name !== undefined && attack) begin(name, attack);
    }
  }

  const going = goOn();
  return {
    tried,
    problems,
    async stop() {
      isOver = true;
      await going;
      await Promise.all(under);
    },
  };
}

/** Refusals for lack of room. */
const BUSY: ReadonlySet<number> = new Set([501, 503, 507]);

const ATTACKS: Readonly<Record<string, Attack>> = {
  async 'bad JSON'({ sendRequest, random }) {
    await sendRequest(post(one(JSON_ROUTES, random)), one(BAD_JSON, random));
  },
  async 'a huge body'({ sendRequest, random }) {
    const text = `{"prompt":{},"extra_data":{"a":[${'[],'.repeat(MEBIBYTE)}0]}}`;
    await sendRequest(post(one(JSON_ROUTES, random)), text);
  },
  async 'a deep body'({ sendRequest, random }) {
    const depth = 100_000;
    await sendRequest(post(one(JSON_ROUTES, random)), `${'['.repeat(depth)}${']'.repeat(depth)}`);
  },
  async 'a body beyond the limit'({ port, random }) {
    const socket = await dial(port);
    socket.write(`${post(one(JSON_ROUTES, random))}\r\nContent-Length: 9999999999\r\n\r\n{`);
    await within(socket, 'data');
    socket.destroy();
  },
  async 'a socket that never reads'({ port, isOver }) {
    const socket = await dial(port);
    socket.pause();
    const ask = `${get(`/view?type=input&filename=${LARGE.name}`)}\r\n\r\n`;
    for (let i = 0; i < 5; i++) socket.write(ask);
    for (let heldMs = 0; heldMs < HELD_MS && !isOver(); heldMs += PAUSE_MS) await delay(PAUSE_MS);
    socket.destroy();
  },
  async 'half a head'({ port, isOver }) {
    const socket = await dial(port);
    socket.write('POST /prompt HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    for (let heldMs = 0; heldMs < HELD_MS && !isOver(); heldMs += PAUSE_MS) await delay(PAUSE_MS);
    socket.destroy();
  },
  async 'an aborted upload'({ port, random }) {
    const socket = await dial(port);
    const part = '--b\r\nContent-Disposition: form-data; name="image"; filename="cut.png"\r\n\r\n';
    const type = 'Content-Type: multipart/form-data; boundary=b';
    socket.write(
      `${post('/upload/image')}\r\n${type}\r\nContent-Length: ${MEBIBYTE}\r\n\r\n${part}`,
    );
    socket.write(randomBytes(Math.floor(random() * 0.9 * MEBIBYTE)));
    await delay(random() * PAUSE_MS);
    socket.destroy();
  },
  async 'a cancelled download'({ port }) {
    const socket = await dial(port);
    socket.write(`${get(`/view?type=input&filename=${LARGE.name}`)}\r\n\r\n`);
    await within(socket, 'data');
    socket.destroy();
  },
  async 'an unknown route'({ sendRequest, random }) {
    const name = Math.floor(random() * 2 ** 32).toString(36);
    const path = one(['', 'api/', 'view/', 'internal/', 'api/v2/', '../', '%00/'], random);
    const method = one(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'], random);
    await sendRequest(`${method} /${path}${name} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${KEY}`);
  },
  async 'a bad form'({ sendRequest, random }) {
    const [type, body] = one(BAD_FORMS, random);
    const route = one(['/upload/image', '/upload/mask', '/api/v2/assets'], random);
    await sendRequest(`${post(route)}\r\nContent-Type: ${type}`, body);
  },
};

function one<T>(list: readonly T[], random: Random): T {
  return list[Math.floor(random() * list.length)] as T;
}

function post(path: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${KEY}`;
}

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${KEY}`;
}

async function statusOf(
  port: number,
  head: string,
  body: string | Uint8Array = '',
): Promise<number> {
  const socket = await dial(port);
  try {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
    socket.write(`${head}\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`);
    socket.write(body);
    const answer = await within(socket, 'data');
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(String(answer))?.[1] ?? 0);
  } finally {
    socket.destroy();
  }
}

async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  // The server may close the connection with a reset.
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** The next bytes; none when the connection is closed instead. */
async function within(socket: Socket, event: 'data'): Promise<Buffer> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), ANSWER_WITHIN_MS);
  try {
    const closed = once(socket, 'close', { signal: stop.signal }).then(() => [Buffer.alloc(0)]);
    const [bytes] = await Promise.race([once(socket, event, { signal: stop.signal }), closed]);
    return bytes as Buffer;
  } catch {
    throw new Error(`no answer within ${ANSWER_WITHIN_MS / 1000} seconds`);
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}
