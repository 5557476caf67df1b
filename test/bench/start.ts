import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, startedEachRound } from './bench.ts';
import { startHoldover } from './holdover.ts';

const SETTLE_MS = 3000;

/** From the command to the first answer, and the memory of a server that then does nothing. */
export const start: Bench = {
  name: 'start',
  needs: [],
  async prepare(context) {
    return startedEachRound(context, async (options) => {
      const startedAt = performance.now();
      const server = await startHoldover(options);
      try {
        await (await fetch(`${server.url}/queue`)).arrayBuffer();
        const ms = performance.now() - startedAt;
        const cpuMs = server.cpuNs() / 1e6;
        await delay(SETTLE_MS);
        return {
          'start to first answer, empty data folder, ms': ms,
          'the same, processor time, ms': cpuMs,
          'resident memory after 3 s, MB': server.rssBytes() / 1e6,
        };
      } finally {
        await server.stop();
      }
    });
  },
};
