import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Graph } from '../../../src/protocol/v2.ts';

/** Outputs that need nothing of each other. */
export function wideGraph(nodes: number): Graph {
  const ids = Array.from({ length: nodes }, (_, i) => String(i + 1));
  return Object.fromEntries(
    ids.map((id) => [id, { class_type: 'PreviewAny', inputs: { source: `text ${id}` } }]),
  );
}

/** Each node but the first takes what the one before it made; the last one shows it. */
export function longChain(nodes: number): Graph {
  const ids = Array.from({ length: nodes }, (_, i) => String(i + 1));
  const source = (id: string) => (id === '1' ? ' text ' : [String(Number(id) - 1), 0]);
  return Object.fromEntries(
    ids.map((id, i) => [
      id,
      i === nodes - 1
        ? { class_type: 'PreviewAny', inputs: { source: source(id) } }
        : { class_type: 'StringTrim', inputs: { string: source(id), mode: 'Both' } },
    ]),
  );
}

/** The JSON messages of one socket, in order. */
export type ReceivedFrames = {
  readonly messages: readonly { readonly type: string; readonly data: any }[];
  /** Of all but `progress_state`, whose number depends on the time. */
  readonly bytes: () => number;
  /** Resolves with v1's last word about a prompt. */
  readonly ended: Promise<void>;
  close(): void;
};

/** Listens as a client of that id; cheaper than a recorder for tens of thousands of messages. */
export async function listen(wsUrl: string, clientId: string): Promise<ReceivedFrames> {
  const socket = new WebSocket(`${wsUrl}/ws?clientId=${clientId}`);
  const messages: { type: string; data: any }[] = [];
  let bytes = 0;
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString());
      if (message.type !== 'progress_state') bytes += data.length;
      messages.push(message);
      if (message.type === 'executing' && message.data.node === null) resolve();
    });
    socket.on('close', () => reject(new Error('the socket was closed')));
  });
  ended.catch(() => {});
  await once(socket, 'open');
  return { messages, bytes: () => bytes, ended, close: () => socket.terminate() };
}
