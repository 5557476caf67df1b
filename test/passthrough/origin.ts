import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

export type Handler = (req: IncomingMessage, res: ServerResponse) => unknown;

/** A service that answers as a test wants, below any path. */
export type Origin = {
  readonly url: string;
  readonly port: number;
  /** The requests it received, without those that Holdover itself makes to learn about a service. */
  readonly heard: IncomingMessage[];
  readonly sockets: Set<Socket>;
  /** Answers calls of this path, with anything before or after it, from now on; the newest wins. */
  on(path: string, handler: Handler): void;
  close(): Promise<void>;
};

/** A caller that is let in gets 404 from it. */
const UNKNOWN_JOB = '00000000-0000-4000-8000-000000000000';

export async function startOrigin(
  options: { readonly refusedKeys?: readonly string[] } = {},
): Promise<Origin> {
  const handlers = new Map<string, Handler>();
  const heard: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    const key = req.headers.authorization?.replace('Bearer ', '') ?? '';
    const refused = options.refusedKeys?.includes(key);
    const handler = [...handlers].findLast(([name]) => path.includes(name))?.[1];
    if (!handler || path.includes(UNKNOWN_JOB))
      return void res.writeHead(refused ? 401 : 404).end();
    heard.push(req);
    // A caller may leave in the middle of its body.
    Promise.resolve(handler(req, res)).catch(() => res.destroy());
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    heard,
    sockets,
    on: (path, handler) => void handlers.set(path, handler),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers with these very bytes, for the last time on this connection. */
export function bytes(first: string, ...lines: readonly string[]): Handler {
  const text = [first, 'Connection: close', ...lines].join('\r\n');
  return (req) => void req.socket.end(text, 'latin1');
}

/** Reads the body of a call, then answers how long it was and what it said. */
export const echo: Handler = async (req, res) => {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  const { method, url, rawHeaders } = req;
  const body = Buffer.concat(chunks).toString();
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify({ method, url, rawHeaders, body }));
};

export type Echoed = { method: string; url: string; rawHeaders: string[]; body: string };

/** The names of headers, in lower case. */
export function namesOf(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
}

/** A service behind which silence is over after a second, with a Holdover in front. */
export async function openBehindOrigin(): Promise<{
  readonly origin: Origin;
  readonly holdover: Holdover;
  readonly close: () => Promise<void>;
}> {
  const origin = await startOrigin();
  const limits = JSON.stringify({ upstream: { silenceMs: 1000 } });
  const args = ['--upstream', origin.url, '--limits', limits];
  const holdover = await startHoldover({ upstream: 'embedded', args });
  origin.on('/echo', echo);
  return {
    origin,
    holdover,
    async close() {
      await holdover.dispose();
      await origin.close();
    },
  };
}
