import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, startedEachRound } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { startOurs } from './program.ts';

const SOCKETS = 5000;
const MOST = SOCKETS + 100;
const ARGS = ['--max-sockets', String(MOST), '--limits', JSON.stringify({ socketsPerUser: MOST })];
/** Memory that a server takes in its first moments is not counted as the cost of a socket. */
const WARM_MS = 3000;
const SETTLE_MS = 600;

/** The memory of a socket that is idle; a new server each time: the allocator gives nothing back. */
export const idle: Bench = {
  name: 'idle',
  needs: [],
  async prepare(context) {
    return startedEachRound(context, async (options) => {
      const server = await startHoldover({ ...options, args: ARGS });
      const clients = await startOurs('sockets');
      try {
        await delay(WARM_MS);
        const baseBytes = server.rssBytes();
        await clients.ask({ url: server.url, sockets: SOCKETS });
        await delay(SETTLE_MS);
        const eachKb = (server.rssBytes() - baseBytes) / 1024 / SOCKETS;
        return { [`one of ${SOCKETS} idle sockets, resident memory, KB`]: eachKb };
      } finally {
        await clients.stop();
        await server.stop();
      }
    });
  },
};
