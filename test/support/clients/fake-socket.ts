import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { WebSocket } from 'ws';
import type { Dialect } from '../../../src/dialects/dialect.ts';
import type { Hub } from '../../../src/sockets/hub.ts';
import type { UpgradedSocket } from '../../../src/sockets/connection.ts';

/** A socket that swallows at once, and the names of the frames it was sent. */
export type FakeSocket = {
  readonly connection: UpgradedSocket;
  /** `executing:3`, `binary:1` … in order; `status` frames are left out. */
  readonly heard: () => string[];
  /** The JSON messages, `status` left out. */
  readonly messages: () => { readonly type: string; readonly data: any }[];
  /** Sends something to the server. */
  say(message: object): void;
  close(): void;
};

export function fakeSocket(): FakeSocket {
  const ws = Object.assign(new EventEmitter(), {
    readyState: WebSocket.OPEN as number,
    bufferedAmount: 0,
    sent: [] as (string | Buffer)[],
    send(piece: string | Buffer, done?: () => void) {
      ws.sent.push(piece);
      done?.();
    },
    ping() {},
    close() {},
    terminate() {},
  });
  const messages = () =>
    ws.sent.flatMap((piece) =>
      typeof piece === 'string' ? (JSON.parse(piece) as { type: string; data: any }) : [],
    );
  return {
    connection: { ws, socket: new PassThrough() } as unknown as UpgradedSocket,
    messages: () => messages().filter(({ type }) => type !== 'status'),
    heard: () => ws.sent.map(nameOf).filter((name) => name !== 'status'),
    say: (message) => ws.emit('message', Buffer.from(JSON.stringify(message)), false),
    close() {
      ws.readyState = WebSocket.CLOSED;
      ws.emit('close');
    },
  };
}

/** Opens one at the hub. */
export function openFake(
  hub: Pick<Hub, 'addConnection'>,
  who: {
    readonly dialect: Dialect;
    readonly clientId?: string;
    readonly user?: string;
    readonly agent?: string;
    readonly watches?: boolean;
    readonly mayBeSilent?: boolean;
  },
): FakeSocket {
  const socket = fakeSocket();
  const { user = 'u', clientId = 'some-id', ...more } = who;
  hub.addConnection(socket.connection, { user, clientId, ...more });
  return socket;
}

function nameOf(piece: string | Buffer): string {
  if (typeof piece !== 'string') return `binary:${piece.readUInt32BE()}`;
  const { type, data } = JSON.parse(piece);
  if (type === 'executing' || type === 'executed') return `${type}:${data.node}`;
  return type === 'progress' ? `${type}:${data.value}/${data.max}` : type;
}
