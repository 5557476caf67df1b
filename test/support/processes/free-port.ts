import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range from which systems give ports to those who ask for any. Each process that runs
 * tests has a part of its own: one may take a port that another has found free.
 */
const PORTS = { first: 20_000, count: 1500, parts: 8 } as const;
const PART = Number(process.env['VITEST_POOL_ID'] ?? 0) % PORTS.parts;

/** Given to a program of this process that may not listen yet. */
const given = new Set<number>();

/**
 * A port that is free now, for programs that cannot pick one. No server that picks any takes it
 * before they do.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + PORTS.count * PART + Math.floor(Math.random() * PORTS.count);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  const isListening = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (isListening) await once(server.close(), 'close');
  return isListening;
}
