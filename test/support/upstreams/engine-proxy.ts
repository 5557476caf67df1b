import { once } from 'node:events';
import {
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
  request,
} from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';

/** Answers a request in place of the engine. */
export type AnswerHandler = (req: IncomingMessage, res: ServerResponse) => void;

/** Stands in front of a v1 engine and can make it another one, or none. */
export type EngineProxy = {
  readonly url: string;
  /** Requests of this method and path are answered so, instead of by the engine. */
  answer(method: string, path: RegExp, answering: AnswerHandler): void;
  /** Until it resolves no WebSocket gets through to the engine. */
  holdSockets(until: Promise<unknown>): void;
  /**
   * Removes a waiting prompt as the original does when it leaves the queue: no history is written,
   * and no socket receives a frame.
   */
  forgetSilently(promptId: string): void;
  /** The port is closed, and open connections are reset. */
  down(): Promise<void>;
  /** On the same port as before. */
  up(): Promise<void>;
  readonly requests: readonly string[];
  close(): Promise<void>;
};

export async function openEngineProxy(engineUrl: string): Promise<EngineProxy> {
  const target = Number(new URL(engineUrl).port);
  const answers: { method: string; path: RegExp; answering: AnswerHandler }[] = [];
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  const forgotten = new Set<string>();
  let held: Promise<unknown> = Promise.resolve();
  let server: Server;

  function serve(req: IncomingMessage, res: ServerResponse): void {
    const { method = '', url = '' } = req;
    requests.push(`${method} ${url}`);
    const found = answers.findLast((one) => one.method === method && one.path.test(url));
    if (found) return found.answering(req, res);
    const headers = { ...req.headers, host: `127.0.0.1:${target}` };
    const passed = request({ port: target, host: '127.0.0.1', method, path: url, headers });
    passed.on('response', (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    req.pipe(passed);
  }

  async function join(req: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    client.on('error', () => {});
    await held;
    const engine = connect(target, '127.0.0.1');
    engine.on('error', () => client.destroy());
    engine.once('close', () => client.destroy());
    client.once('close', () => engine.destroy());
    const lines = Object.entries(req.headers).map(([name, value]) =>
      name === 'host' ? `host: 127.0.0.1:${target}` : `${name}: ${String(value)}`,
    );
    engine.write(`GET ${req.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    engine.write(head);
    client.pipe(engine);
    let isOpen = false;
    engine.on('data', (bytes: Buffer) => {
      // The server connects as the job it asks about.
      if (!isOpen || ![...forgotten].some((id) => req.url?.includes(id))) client.write(bytes);
      isOpen = true;
    });
    engine.once('end', () => client.end());
  }

  async function listen(port: number): Promise<number> {
    server = createServer(serve);
    server.on('upgrade', (req, socket: Socket, head) => void join(req, socket, head));
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  async function down(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  }

  const port = await listen(0);
  const self: EngineProxy = {
    url: `http://127.0.0.1:${port}`,
    answer: (method, path, answering) => void answers.push({ method, path, answering }),
    forgetSilently(promptId) {
      forgotten.add(promptId);
      self.answer('GET', new RegExp(`/history/${promptId}`), (_, res) => {
        res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      });
    },
    holdSockets: (until) => void (held = until),
    down,
    up: async () => void (server.listening || (await listen(port))),
    requests,
    close: down,
  };
  return self;
}
