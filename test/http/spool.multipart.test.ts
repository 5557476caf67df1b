import { once } from 'node:events';
import { constants } from 'node:fs';
import { open, readFile, readdir, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createHasher } from '../../src/lib/hash.ts';
import { type Form, type MultipartOptions, receiveMultipart } from '../../src/http/multipart.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const MAX = 64 * 1024;
const CLOSE = '--b--\r\n';

let root: string;
let dir: string;
let server: Server;
let limits: Partial<MultipartOptions>;
let forms: Form[];
let failures: unknown[];
let answers: Promise<void>[];

beforeEach(async () => {
  root = await tempFolder('multipart');
  dir = join(root, 'spool');
  [limits, forms, failures, answers] = [{}, [], [], []];
  server = createServer((request, response) => void answers.push(answer(request, response)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(async () => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
});

/** As the upload routes do it: a refusal closes the connection, broken plumbing is a 500. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const received = await receiveMultipart(request, { dir, maxFileBytes: MAX, ...limits });
    if (received.ok) forms.push(received.value);
    const [status, text] = received.ok ? [200, ''] : [received.status, received.message];
    response.writeHead(status, received.ok ? {} : { Connection: 'close' }).end(text);
  } catch (error) {
    failures.push(error);
    response.writeHead(500, { Connection: 'close' }).end();
  }
}

async function left(): Promise<string[]> {
  return readdir(dir).catch(() => []);
}

function part(disposition: string, data: string, more = ''): string {
  return `--b\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n${data}\r\n`;
}

function image(data: string, filename = 'a.png'): string {
  return part(`name="image"; filename="${filename}"`, data);
}

function head(headers: readonly string[], type = 'multipart/form-data; boundary=b'): string {
  const lines = ['POST / HTTP/1.1', 'Host: x', `Content-Type: ${type}`, ...headers];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function dial(): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  return socket;
}

/** The first answer on this socket; one that never comes fails the test by its time limit. */
async function answerOn(socket: Socket): Promise<{ status: number; text: string }> {
  let answer = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => (answer += chunk));
  // Not `once`, which rejects when the connection was closed on what is still being sent.
  await new Promise((resolve) => socket.once('close', resolve));
  const [top = '', text = ''] = answer.split('\r\n\r\n');
  return { status: Number(top.split(' ')[1]), text: text.replace(/^[0-9a-f]+\r\n|\r\n0$/g, '') };
}

/** Sends a whole request over a socket of its own, as it is. */
async function send(
  body: string | Buffer,
  options: { type?: string; headers?: readonly string[] } = {},
): Promise<{ status: number; text: string }> {
  const socket = dial();
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  socket.write(head([length, 'Connection: close', ...(options.headers ?? [])], options.type));
  socket.write(body);
  return answerOn(socket);
}

async function form(body: string | Buffer): Promise<Form> {
  expect(await send(body)).toMatchObject({ status: 200 });
  return forms.at(-1) ?? expect.unreachable();
}

describe('a form', () => {
  test('gives its fields as texts and its files spooled, with size and hash', async () => {
    const { fields, files } = await form(
      part('name="type"', 'input') + image('bytes') + part('name="type"', 'temp') + CLOSE,
    );
    expect(fields).toEqual(new Map([['type', ['input', 'temp']]]));
    const hasher = createHasher();
    hasher.update(Buffer.from('bytes'));
    const file = { path: expect.any(String), sizeBytes: 5, hash: hasher.digest() };
    expect(files).toEqual([
      { field: 'image', filename: 'a.png', contentType: expect.any(String), file },
    ]);
    expect(await readFile(files[0]?.file.path ?? '', 'utf8')).toBe('bytes');
  });

  test('has a text that was sent as a file among its files', async () => {
    const { fields, files } = await form(
      image('x') + part('name="overwrite"; filename="blob"', 'true') + CLOSE,
    );
    expect(fields.size).toBe(0);
    expect(files.map(({ field }) => field)).toEqual(['image', 'overwrite']);
    expect(await readFile(files[1]?.file.path ?? '', 'utf8')).toBe('true');
  });

  test.each([
    [70, 200],
    [71, 400],
  ])(
    'has a boundary of at most 70 characters, as by RFC 2046: %i is %i',
    async (length, status) => {
      const boundary = 'b'.repeat(length);
      const body = (image('x') + CLOSE).replaceAll('--b', `--${boundary}`);
      const type = `multipart/form-data; boundary=${boundary}`;
      expect(await send(body, { type })).toMatchObject({ status });
    },
  );

  test('costs the same whatever its bytes are', async () => {
    limits = { maxFileBytes: 32 * 2 ** 20 };
    const cpuMsOf = async (bytes: string): Promise<number> => {
      const before = process.cpuUsage();
      await form(image(bytes.repeat((16 * 2 ** 20) / bytes.length)) + CLOSE);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    const plain = await cpuMsOf('xxxx');
    expect(await cpuMsOf('\r\n--')).toBeLessThan(plain * 3 + 100);
  });

  test('keeps a declared type, names in UTF-8, and what an attacker calls them', async () => {
    const { fields, files } = await form(
      part('name="image"; filename="猫 é.png"', 'x', 'Content-Type: image/png\r\n') +
        part('name="__proto__"', 'polluted') +
        image('y', '../../etc/passwd') +
        image('z', 'a%0d%0aX: y.png') +
        CLOSE,
    );
    expect(files.map(({ filename }) => filename)).toEqual([
      '猫 é.png',
      '../../etc/passwd',
      'a%0d%0aX: y.png',
    ]);
    expect(files[0]?.contentType).toBe('image/png');
    expect(fields.get('__proto__')).toEqual(['polluted']);
    expect(Object.keys({})).toEqual([]);
    for (const name of await left()) expect(name).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('may hold an empty file', async () => {
    const { files } = await form(image('') + CLOSE);
    expect(files[0]?.file.sizeBytes).toBe(0);
  });

  test('may hold line ends and all but the boundary in a file', async () => {
    const data = '\r\n--\r\n--c\r\n--\r\n\r\n-';
    const { files } = await form(image(data) + CLOSE);
    expect(await readFile(files[0]?.file.path ?? '', 'utf8')).toBe(data);
  });

  test.each([
    ['nothing but the end', CLOSE],
    ['a part without a disposition', `--b\r\nX-Other: 1\r\n\r\nx\r\n${CLOSE}`],
  ])('of %s has neither fields nor files', async (_what, body) => {
    const { fields, files } = await form(body);
    expect([fields.size, files.length]).toEqual([0, 0]);
  });

  test.each([
    ['multipart/form-data; boundary=b;'],
    ['multipart/form-data;boundary = b'],
    ['Multipart/Form-Data; charset=utf-8; Boundary="b"'],
    ['multipart/form-data; boundary=b; charset=UTF-8'],
  ])('is read under the type %s', async (type) => {
    const { status } = await send(image('bytes') + CLOSE, { type });
    expect([status, forms[0]?.files[0]?.filename]).toEqual([200, 'a.png']);
  });

  test.each(['==b==', 'b:1/2', '(b)', 'b b'])('is read with the bare boundary %s', async (bare) => {
    const body = (image('bytes') + CLOSE).replaceAll('--b', `--${bare}`);
    const { status } = await send(body, { type: `multipart/form-data; boundary=${bare}` });
    expect([status, forms[0]?.files.length]).toEqual([200, 1]);
  });

  test.each([
    ['base64', 'aGVs\r\nbG8gd29y\r\nbGQ=\r\n'],
    ['BASE64', 'aGVsbG8gd29ybGQ'],
    ['quoted-printable', 'hello=\r\n=20world'],
    ['binary', 'hello world'],
    ['8bit', 'hello world'],
  ])('has its parts decoded from %s', async (encoding, data) => {
    const header = `Content-Transfer-Encoding: ${encoding}\r\n`;
    const body = part('name="image"; filename="a.txt"', data, header);
    const { fields, files } = await form(body + part('name="text"', data, header) + CLOSE);
    expect(await readFile(files[0]?.file.path ?? '', 'utf8')).toBe('hello world');
    expect(fields.get('text')).toEqual(['hello world']);
  });

  // The form writer for C# that is copied most ends the line of a file with a semicolon.
  test('may end a disposition in a semicolon', async () => {
    const file = part('name="image"; filename="a;.png";', 'x;\r\n', 'Content-Type: image/png;\r\n');
    const { fields, files } = await form(part('name="type" ; ', 'input;') + file + CLOSE);
    expect(fields.get('type')).toEqual(['input;']);
    expect(files).toMatchObject([{ field: 'image', filename: 'a;.png' }]);
    expect(await readFile(files[0]?.file.path ?? '', 'utf8')).toBe('x;\r\n');
  });

  test.each(['attachment', 'file', 'FORM-DATA'])('may have the disposition %s', async (type) => {
    const body = (image('x') + part('name="type"', 'temp')).replaceAll(': form-data', `: ${type}`);
    const { fields, files } = await form(body + CLOSE);
    expect(fields.get('type')).toEqual(['temp']);
    expect(files).toMatchObject([{ field: 'image', filename: 'a.png' }]);
  });

  test.each([
    ['\xe9t\xe9.png', 'été.png'],
    ['\xc4\x81\xff.png', 'Ä_ÿ.png'],
  ])('may name a file in the code page of a machine: %j', async (sent, name) => {
    const [before = '', after = ''] = (image('bytes') + CLOSE).split('a.png');
    const { files } = await form(Buffer.from(before + sent + after, 'latin1'));
    expect(files.map(({ filename }) => filename)).toEqual([name]);
  });

  test('keeps what looks like headers in a file', async () => {
    const data = 'x--b\r\nContent-Disposition: form-data; name="x";\r\n\r\n\r\n--c;\r\n';
    const { files } = await form(image(data) + CLOSE);
    expect(await readFile(files[0]?.file.path ?? '', 'utf8')).toBe(data);
  });

  test('may come in pieces of any size', async () => {
    const body = Buffer.from(`${image('\r\n--\r\n;')}${part('name="type";', 'temp')}${CLOSE}`);
    for (const size of [1, 2, 3, 5, 7, 11, 64]) {
      const socket = dial();
      socket.write(head([`Content-Length: ${body.length}`, 'Connection: close']));
      for (let at = 0; at < body.length; at += size) {
        socket.write(body.subarray(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect((await answerOn(socket)).status).toBe(200);
      const { fields, files } = forms.pop() ?? { fields: new Map(), files: [] };
      expect(fields.get('type')).toEqual(['temp']);
      expect(await readFile(files[0]?.file.path ?? '', 'utf8')).toBe('\r\n--\r\n;');
    }
  });

  test('may have a part without a name', async () => {
    const { files } = await form(part('filename="a.png"', 'x') + CLOSE);
    expect(files.map(({ field }) => field)).toEqual(['']);
  });
});

describe('a body over a limit is 413 in v1’s words and leaves nothing:', () => {
  const refused = { status: 413, text: `Maximum request body size ${MAX} exceeded.` };

  test('in many small files that are too much together', async () => {
    limits = { maxFiles: 100 };
    const socket = dial();
    socket.write(head(['Transfer-Encoding: chunked']));
    const bytes = image('x'.repeat(MAX / 4)).repeat(5) + CLOSE;
    socket.write(`${bytes.length.toString(16)}\r\n${bytes}\r\n0\r\n\r\n`);
    expect(await answerOn(socket)).toEqual(refused);
    expect(await left()).toEqual([]);
  });
});

describe('a disk that fails', () => {
  /** Every open file has this prototype; nothing exports it. */
  async function brokenDisk(code: string): Promise<void> {
    const handle = await open(root, constants.O_RDONLY);
    await handle.close();
    const error = Object.assign(new Error(code), { code, syscall: 'write' });
    vi.spyOn(Object.getPrototypeOf(handle), 'writeFile').mockRejectedValue(error);
  }

  /** More than every buffer on the way holds. */
  const body = image('x'.repeat(8 * 1024 * 1024)) + image('y') + CLOSE;
  beforeEach(() => {
    limits = { maxFileBytes: 2 * body.length };
  });

  test('for lack of room is 507, and the next upload works', async () => {
    await brokenDisk('ENOSPC');
    expect(await send(body)).toMatchObject({ status: 507 });
    vi.restoreAllMocks();
    expect(await left()).toEqual([]);
    expect(await send(body)).toMatchObject({ status: 200 });
  });

  test('otherwise is 507 as well, before the first byte of a file', async () => {
    await writeFile(dir, 'a file where the folder should be');
    expect(await send(body)).toMatchObject({ status: 507 });
    expect(failures).toEqual([]);
  });
});
