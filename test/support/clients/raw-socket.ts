import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';

/** The answer on a raw connection; status 0: the server closed it without an answer. */
export type RawAnswer = {
  readonly status: number;
  /** Names in lower case; repeated ones joined with commas. */
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  /** Everything as received, for what must not be in it. */
  readonly raw: string;
};

/** A connection that says exactly what it is told. */
export type Wire = {
  readonly socket: Socket;
  send(bytes: string | Uint8Array): void;
  /** Everything received when the server closes the connection. */
  answer(): Promise<RawAnswer>;
  /** Resolves as soon as this many bytes have come, or the connection is closed. */
  received(byteCount: number): Promise<Buffer>;
  /** Everything received as soon as it contains this text, or the connection is closed. */
  until(text: string): Promise<RawAnswer>;
  /** A peer that vanishes. */
  reset(): void;
};

/** Opens a connection on which anything can be said. */
export async function dial(port: number): Promise<Wire> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  const wakers = new Set<() => void>();
  const wake = (): void => wakers.forEach((each) => each());
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    wake();
  });
  socket.on('error', () => {});
  socket.on('close', wake);
  await once(socket, 'connect');
  const all = (): Buffer => Buffer.concat(chunks);
  const when = (test: (bytes: Buffer) => boolean): Promise<Buffer> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!test(all()) && !socket.closed) return;
        wakers.delete(look);
        resolve(all());
      };
      wakers.add(look);
      look();
    });
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    async answer() {
      if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
      return readAnswer(all());
    },
    received: (byteCount) => when((bytes) => bytes.length >= byteCount),
    until: async (text) => readAnswer(await when((bytes) => bytes.includes(text))),
    reset: () => void socket.resetAndDestroy(),
  };
}

/** A whole request as text; `Host` and `Connection: close` are added unless given. */
export function requestText(
  target: string,
  options: { method?: string; headers?: readonly string[]; body?: string } = {},
): string {
  const { method = 'GET', headers = [], body = '' } = options;
  const has = (name: string): boolean =>
    headers.some((line) => line.toLowerCase().startsWith(name));
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...(has('host') ? [] : ['Host: 127.0.0.1']),
    ...headers,
    ...(has('connection') ? [] : ['Connection: close']),
    ...(body === '' || has('content-length') ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** Sends these bytes and reads until the server closes the connection. */
export async function say(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  const wire = await dial(port);
  wire.send(bytes);
  return wire.answer();
}

/** The first answer in these bytes; one that was sent in chunks is put together. */
export function readAnswer(bytes: Buffer): RawAnswer {
  const raw = bytes.toString('latin1');
  const end = raw.indexOf('\r\n\r\n');
  const [first = '', ...lines] = raw.slice(0, Math.max(0, end)).split('\r\n');
  const headers: { [name: string]: string } = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  const rest = raw.slice(end + 4);
  const body = headers['transfer-encoding'] === 'chunked' ? joinChunks(rest) : rest;
  const status = Number(first.split(' ')[1] ?? 0);
  return { status, headers, body: Buffer.from(body, 'latin1').toString(), raw };
}

function joinChunks(text: string): string {
  let body = '';
  for (let at = 0; at < text.length;) {
    const lineEnd = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (!(size > 0)) break;
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
  return body;
}

/** The opening handshake of a WebSocket, as text, with headers replaced or left out (`null`). */
export function upgradeText(
  target = '/ws?clientId=raw',
  options: { method?: string; headers?: { readonly [name: string]: string | null } } = {},
): string {
  const headers = {
    Host: '127.0.0.1',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    ...options.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${value}`],
  );
  return `${options.method ?? 'GET'} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** A WebSocket frame with any bit wrong that a test wants wrong. */
export function wsFrame(
  opcode: number,
  payload: string | Uint8Array = '',
  wrong: { fin?: boolean; masked?: boolean; rsv?: number; declare?: number } = {},
): Buffer {
  const { fin = true, masked = true, rsv = 0 } = wrong;
  const bytes = Buffer.from(payload as Uint8Array);
  const length = wrong.declare ?? bytes.length;
  const head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode];
  const mask = masked ? 0x80 : 0;
  if (length < 126) head.push(mask | length);
  else if (length < 65_536) head.push(mask | 126, length >> 8, length & 255);
  else {
    const wide = Buffer.alloc(8);
    wide.writeBigUInt64BE(BigInt(length));
    head.push(mask | 127, ...wide);
  }
  if (!masked) return Buffer.concat([Buffer.from(head), bytes]);
  const key = randomBytes(4);
  const hidden = bytes.map((byte, i) => byte ^ (key[i % 4] ?? 0));
  return Buffer.concat([Buffer.from(head), key, hidden]);
}

/** The code a server closed a WebSocket with; `undefined`: it said none. */
export function closeCode(received: Buffer): number | undefined {
  let at = received.indexOf('\r\n\r\n') + 4;
  while (at + 2 <= received.length) {
    const opcode = (received[at] ?? 0) & 15;
    const short = (received[at + 1] ?? 0) & 127;
    const headBytes = short === 126 ? 4 : short === 127 ? 10 : 2;
    const length =
      short === 126
        ? received.readUInt16BE(at + 2)
        : short === 127
          ? Number(received.readBigUInt64BE(at + 2))
          : short;
    if (opcode === 8) return length >= 2 ? received.readUInt16BE(at + headBytes) : undefined;
    at += headBytes + length;
  }
  return undefined;
}
