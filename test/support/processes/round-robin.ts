import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';

/** Plain TCP, the next server for each connection; one that refuses is passed over. */
export type Balancer = {
  readonly url: string;
  readonly wsUrl: string;
  close(): Promise<void>;
};

export async function openBalancer(ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let turn = 0;

  function forward(client: Socket, tries: number): void {
    const port = ports[turn++ % ports.length] ?? 0;
    const server = connect(port, '127.0.0.1');
    const lose = (): void => void client.destroy();
    server.once('connect', () => {
      server.off('error', tryNext).on('error', lose);
      client.pipe(server).pipe(client);
      client.once('close', () => server.destroy());
      server.once('close', lose);
    });
    function tryNext(): void {
      if (tries < ports.length) forward(client, tries + 1);
      else lose();
    }
    server.once('error', tryNext);
  }

  const listener = createServer((client) => {
    open.add(client);
    client.once('close', () => open.delete(client)).on('error', () => client.destroy());
    forward(client, 1);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    async close() {
      for (const socket of open) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
