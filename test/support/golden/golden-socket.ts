import { once } from 'node:events';
import { WebSocket } from 'ws';
import { type WsRecord } from './golden-scenario.ts';

/** A frame as it came: text, or the bytes of a binary one. */
export type Frame = string | Buffer;

/** One of our sockets, recording. */
export type GoldenSocket = {
  readonly frames: Frame[];
  /** The extensions that the handshake agreed on. */
  readonly extensions: string;
  /** Set once it is closed. */
  closeCode(): number | undefined;
  send(record: WsRecord): void;
  close(): Promise<void>;
  /** Everything sent before this call has arrived when it resolves. */
  settle(): Promise<void>;
  /** Resolves at the next frame or after `timeoutMs`. */
  nextFrame(timeoutMs: number): Promise<void>;
};

export async function openGoldenSocket(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<GoldenSocket> {
  const socket = new WebSocket(url, { headers });
  const frames: Frame[] = [];
  let code: number | undefined;
  socket.on('message', (data: Buffer, isBinary) =>
    frames.push(...(isBinary ? [data] : withoutBatches(data.toString()))),
  );
  socket.on('close', (closed) => (code = closed));
  socket.on('error', () => {});
  await once(socket, 'open');
  return {
    frames,
    extensions: socket.extensions,
    closeCode: () => code,
    send: (record) => sendRecorded(socket, record),
    async close() {
      if (socket.readyState === WebSocket.CLOSED) return;
      socket.close();
      await once(socket, 'close');
    },
    async settle() {
      if (socket.readyState !== WebSocket.OPEN) return;
      socket.ping();
      await Promise.race([once(socket, 'pong'), once(socket, 'close')]);
    },
    nextFrame: (timeoutMs) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          socket.off('message', done);
          socket.off('close', done);
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        socket.on('message', done);
        socket.on('close', done);
      }),
  };
}

/** Lines of the log share a frame when they come close together. */
function withoutBatches(text: string): string[] {
  if (!text.startsWith('{"type": "logs"')) return [text];
  const { type, data } = JSON.parse(text) as { type: string; data: { entries: []; size: unknown } };
  return data.entries.map((entry, i) =>
    JSON.stringify({ type, data: { entries: [entry], size: i === 0 ? data.size : null } }),
  );
}

/** Oversized and binary frames are recorded as a note with their size. */
function sendRecorded(socket: WebSocket, { json, text, note }: WsRecord): void {
  const size = Number(/of (\d+) bytes/.exec(note ?? '')?.[1] ?? 0);
  if (json !== undefined) socket.send(JSON.stringify(json));
  else if (text !== undefined) socket.send(text);
  else if (note === 'ping') socket.ping();
  else if (note?.startsWith('binary')) socket.send(Buffer.alloc(size, 1));
  else socket.send('x'.repeat(size));
}
