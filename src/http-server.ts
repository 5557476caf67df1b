import { type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Limits that keep a slow or hostile peer from holding the server; honest slow uploads are spared. */
export function createHttpServer(handler: RequestListener): Server {
  const server = createServer(
    {
      maxHeaderSize: 16 * 1024,
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5000,
      requestTimeout: 0,
      // Pollers come every five seconds and more rarely; closing under them looks like a reset.
      keepAliveTimeout: 80_000,
    },
    handler,
  );
  server.maxHeadersCount = 100;
  return server;
}

/** Binds; resolves with the port, rejects with a sentence a person can act on. */
export function listen(
  server: Server,
  where: { readonly listen: string; readonly port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === 'EADDRINUSE' ? 'the port is in use' : cause.message;
      reject(new Error(`cannot listen on ${where.listen}:${where.port}: ${reason}`, { cause }));
    });
    server.listen(where.port, where.listen, () => resolve((server.address() as AddressInfo).port));
  });
}

/** The address as people type it. */
export function urlOf(where: { readonly listen: string }, port: number): string {
  const host = where.listen.includes(':') ? `[${where.listen}]` : where.listen;
  return `http://${host}:${port}`;
}
