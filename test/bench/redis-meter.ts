import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';

/** The commands and bytes that one process and its Redis have exchanged. */
export type RedisTraffic = {
  readonly commands: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
};

/** A way to a Redis on which everything is counted. */
export type RedisMeter = {
  readonly url: string;
  traffic(): RedisTraffic;
  close(): void;
};

const LINE_END = 0x0a;
const ARRAY = 0x2a;

export async function meterRedis(port: number): Promise<RedisMeter> {
  const counted = { commands: 0, sentBytes: 0, receivedBytes: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    const countCommands = createCommandCounter();
    client.on('data', (bytes) => {
      counted.sentBytes += bytes.length;
      counted.commands += countCommands(bytes);
    });
    redis.on('data', (bytes) => (counted.receivedBytes += bytes.length));
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        redis.destroy();
      });
    }
    client.pipe(redis);
    redis.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: metered } = server.address() as AddressInfo;
  return {
    url: `redis://127.0.0.1:${metered}`,
    traffic: () => ({ ...counted }),
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Counts the commands of a connection: arrays of texts, each with its length before it. */
function createCommandCounter(): (bytes: Buffer) => number {
  let header = '';
  let skip = 0;
  return (bytes) => {
    let commands = 0;
    for (let at = 0; at < bytes.length;) {
      if (skip > 0) {
        const skipped = Math.min(skip, bytes.length - at);
        skip -= skipped;
        at += skipped;
        continue;
      }
      const end = bytes.indexOf(LINE_END, at);
      header += bytes.toString('latin1', at, end === -1 ? bytes.length : end);
      if (end === -1) return commands;
      at = end + 1;
      if (header.charCodeAt(0) === ARRAY) commands++;
      else skip = Number.parseInt(header.slice(1), 10) + 2;
      header = '';
    }
    return commands;
  };
}
