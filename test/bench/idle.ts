import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, Context } from './bench.ts';
import { startHoldover } from './holdover.ts';
import {
  type Row,
  type Sample,
  interleave,
  median,
  rounded,
  spreadOf,
  valuesOf,
} from './measure.ts';
import { type Program, startOurs } from './program.ts';

const SIZES = [1000, 5000] as const;
const MOST_KB = 16;
const SETTLE_MS = 600;
/** Memory that a server takes in its first moments is not counted as the cost of a socket. */
const WARM_MS = 3000;

/** The cost of a socket that is idle. */
export const idle: Bench = {
  name: 'idle',
  needs: [],
  async run(context) {
    const rows: Row[] = [];
    for (const sockets of SIZES) rows.push(await rowOf(context, sockets));
    return rows;
  },
};

async function rowOf({ workDir, rounds }: Context, sockets: number): Promise<Row> {
  const most = sockets + 100;
  const args = [
    '--max-sockets',
    String(most),
    '--limits',
    JSON.stringify({ socketsPerUser: most }),
  ];
  const samples = await interleave(rounds, {
    holdover: () => perSocket(startHoldover({ workDir, args }), sockets),
    bare: () => perSocket(startOurs('fanout-ws', { side: 'subject' }), sockets),
  });
  const ours = valuesOf(samples.holdover);
  return {
    bench: 'idle',
    figure: `${sockets} idle sockets, RSS of each`,
    unit: 'KB',
    holdover: median(ours),
    reference: { name: 'bare ws server', value: median(valuesOf(samples.bare)) },
    reached: `${rounded(median(ours))} KB`,
    target: `≤ ${MOST_KB} KB`,
    holds: median(ours) <= MOST_KB,
    spread: spreadOf(ours),
    cpu: {
      holdover: median(samples.holdover.map(({ cpuUs = Number.NaN }) => cpuUs)),
      reference: median(samples.bare.map(({ cpuUs = Number.NaN }) => cpuUs)),
      unit: 'µs/connect',
    },
  };
}

/** A new server each time: what the allocator has once taken it does not give back. */
async function perSocket(starting: Promise<Program>, sockets: number): Promise<Sample> {
  const program = await starting;
  const clients = await startOurs('drain', { side: 'load' });
  try {
    await delay(WARM_MS);
    const baseBytes = program.rssBytes();
    const cpuBefore = program.cpuNs();
    await clients.ask({ url: program.url, sockets });
    const cpuUs = (program.cpuNs() - cpuBefore) / 1000 / sockets;
    await delay(SETTLE_MS);
    return { value: (program.rssBytes() - baseBytes) / 1024 / sockets, cpuUs };
  } finally {
    await clients.stop();
    await program.stop();
  }
}
