import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** `up`: what the client sends; `down`: what it is answered. */
export type Direction = 'up' | 'down';

/** The faults of one direction of a connection. */
export type Toxic = {
  readonly latencyMs?: number;
  readonly bytesPerSecond?: number;
  /** Bytes travel in pieces of at most so many. */
  readonly sliceBytes?: number;
  /** After so many more bytes of a connection it ends. */
  readonly limit?: { readonly bytes: number; readonly end: 'fin' | 'rst' };
  /** Nothing is read, nothing is written, no end is sent: a peer that vanished. */
  readonly isBlackhole?: boolean;
  /** Its end is passed on so much later. */
  readonly slowCloseMs?: number;
};

/** A relay that behaves as badly as networks do. */
export type FaultProxy = {
  readonly url: string;
  /** Connections it took so far. */
  readonly accepted: () => number;
  readonly open: () => number;
  /** Bytes that came from clients so far. */
  readonly bytesUp: () => number;
  /** From now on; replaces what was said before of this direction. */
  set(direction: Direction, toxic: Toxic): void;
  /** Everything flows again. */
  restore(): void;
  /** The port is closed, and open connections are reset. */
  down(): Promise<void>;
  /** On the same port as before. */
  up(): Promise<void>;
  /** Ends what is open. */
  cut(how: 'fin' | 'rst'): void;
  close(): Promise<void>;
};

type Link = { readonly client: Socket; readonly target: Socket };

export async function openFaultProxy(targetUrl: string): Promise<FaultProxy> {
  const targetPort = Number(new URL(targetUrl).port);
  const toxics: { [direction in Direction]: Toxic } = { up: {}, down: {} };
  const links = new Set<Link>();
  const count = { accepted: 0, bytesUp: 0 };
  let server: Server | undefined;

  function relay(client: Socket): void {
    count.accepted += 1;
    const target = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true });
    const link = { client, target };
    links.add(link);
    for (const socket of [client, target]) {
      socket.setNoDelay(true);
      socket.on('error', () => end(link, 'rst'));
      socket.once('close', () => client.destroyed && target.destroyed && links.delete(link));
    }
    void pump(link, 'up').catch(() => end(link, 'rst'));
    void pump(link, 'down').catch(() => end(link, 'rst'));
  }

  async function pump(link: Link, direction: Direction): Promise<void> {
    const [from, to] = direction === 'up' ? [link.client, link.target] : [link.target, link.client];
    const spent = { toxic: toxics[direction], bytes: 0 };
    for await (const chunk of from) {
      const bytes = chunk as Buffer;
      if (direction === 'up') count.bytesUp += bytes.length;
      for (let at = 0; at < bytes.length;) {
        await untilFlowing(direction, from);
        const toxic = toxics[direction];
        if (spent.toxic !== toxic) Object.assign(spent, { toxic, bytes: 0 });
        const allowed = (toxic.limit?.bytes ?? Infinity) - spent.bytes;
        const piece = bytes.subarray(at, at + Math.min(toxic.sliceBytes ?? Infinity, allowed));
        await delay(
          (toxic.latencyMs ?? 0) + (piece.length * 1000) / (toxic.bytesPerSecond ?? Infinity),
        );
        if (piece.length > 0 && !to.write(piece)) await once(to, 'drain');
        at += piece.length;
        spent.bytes += piece.length;
        if (toxic.limit && spent.bytes >= toxic.limit.bytes) return end(link, toxic.limit.end);
      }
    }
    await untilFlowing(direction, from);
    await delay(toxics[direction].slowCloseMs ?? 0);
    to.end();
  }

  async function untilFlowing(direction: Direction, from: Socket): Promise<void> {
    while (toxics[direction].isBlackhole && !from.destroyed) await delay(5);
  }

  function end({ client, target }: Link, how: 'fin' | 'rst'): void {
    if (how === 'rst') client.resetAndDestroy();
    else client.destroySoon();
    target.resetAndDestroy();
  }

  async function listen(port: number): Promise<number> {
    server = createServer({ allowHalfOpen: true }, relay);
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  async function down(): Promise<void> {
    const closing = server;
    server = undefined;
    for (const link of links) end(link, 'rst');
    if (!closing?.listening) return;
    closing.close();
    await once(closing, 'close');
  }

  const port = await listen(0);
  return {
    url: `http://127.0.0.1:${port}`,
    accepted: () => count.accepted,
    open: () => links.size,
    bytesUp: () => count.bytesUp,
    set: (direction, toxic) => void (toxics[direction] = toxic),
    restore: () => void Object.assign(toxics, { up: {}, down: {} }),
    down,
    up: async () => void (server?.listening || (await listen(port))),
    cut(how) {
      for (const link of links) end(link, how);
    },
    close: down,
  };
}
