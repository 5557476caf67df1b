import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port and prints its address, for which the bench waits. */
export function serve(server: Server): void {
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', 4096, () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`serving http://127.0.0.1:${port}\n`);
  });
}

/** Answers requests on the channel; exits when the bench exits. */
export function answer<Request>(act: (request: Request) => unknown): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (request) => {
    void Promise.resolve(act(request as Request)).then((reply) => process.send?.(reply ?? {}));
  });
}

/** For programs that serve nothing but answers. */
export function ready(): void {
  process.stdout.write('serving nothing\n');
}
