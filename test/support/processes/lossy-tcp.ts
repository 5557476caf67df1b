import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';

/** Stands in front of a server and breaks connections at the worst moment. */
export type Lossy = {
  readonly port: number;
  /**
   * The next bytes the server answers are thrown away with their connection. New connections wait
   * until `meanwhile` is over.
   */
  loseNextAnswer(meanwhile?: () => Promise<unknown>): void;
  /** How many answers were lost so far. */
  lost(): number;
  close(): Promise<void>;
};

export async function startLossy(targetPort: number): Promise<Lossy> {
  const open = new Set<Socket>();
  let doom: (() => Promise<unknown>) | undefined;
  let reopened: Promise<unknown> = Promise.resolve();
  let lost = 0;

  async function join(client: Socket): Promise<void> {
    open.add(client);
    await reopened;
    const server = connect(targetPort, '127.0.0.1');
    open.add(server);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
    client.pipe(server);
    server.on('data', (bytes: Buffer) => {
      if (doom === undefined) return void client.write(bytes);
      lost++;
      reopened = doom();
      doom = undefined;
      client.destroy();
    });
  }

  const listener = createServer((client) => void join(client)).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    loseNextAnswer(meanwhile = async () => {}) {
      doom = meanwhile;
    },
    lost: () => lost,
    async close() {
      for (const socket of open) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
