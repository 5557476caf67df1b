// The client's side of a floor: takes prompts, answers them, and sends frames to one WebSocket.
import { type IncomingMessage, createServer } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';

/** Frames of a prompt of this benchmark before its last one. */
const FRAMES = 13;

export type FloorClient = {
  /** Sends so many of a prompt's frames; all that are left with its last one. */
  sendFrames(id: string, count?: number): void;
  sendLast(id: string): void;
};

/** `accept` resolves with the prompt's id once the prompt survives a crash. */
export function serveFloor(accept: (body: string) => Promise<string>): FloorClient {
  const left = new Map<string, number>();
  let socket: WebSocket | undefined;
  const send = (frame: object): void => socket?.send(JSON.stringify(frame));
  const dataOf = (id: string) => ({ prompt_id: id, node: '1', timestamp: Date.now() });

  const server = createServer((req, res) => {
    void readBody(req).then(async (body) => {
      const id = await accept(body);
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ prompt_id: id, number: 1, node_errors: {} }));
    });
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (opened) => (socket = opened));
  process.on('SIGTERM', () => process.exit(0));
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number };
    process.stdout.write(`serving http://127.0.0.1:${port}\n`);
  });

  return {
    sendFrames(id, count = FRAMES) {
      const unsent = left.get(id) ?? FRAMES;
      const sent = Math.min(count, unsent);
      for (let frame = 0; frame < sent; frame++) send({ type: 'executing', data: dataOf(id) });
      left.set(id, unsent - sent);
    },
    sendLast(id) {
      this.sendFrames(id);
      left.delete(id);
      send({ type: 'execution_success', data: dataOf(id) });
    },
  };
}

export async function readBody(from: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of from) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
