import type { Graph } from '../../src/protocol/v2.ts';
import { listen, longChain, wideGraph } from '../support/graphs/large-graphs.ts';

import type { Bench, Context } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { type Row, median } from './measure.ts';
import type { Program } from './program.ts';

const NODES = 10_000;
const ROUNDS = 3;
const POLL_MS = 10;
const IDLE_MS = 1000;
const MOST = { p99Ms: 50, maxMs: 200, grownMb: 400, kbPerNode: 4 } as const;

const SHAPES = { 'independent outputs': wideGraph, 'in a chain': longChain } as const;

type LoopDelay = { readonly p99Ms: number; readonly maxMs: number };
type Run = LoopDelay & {
  /** The same of the server while it had nothing to do: what the machine adds. */
  readonly idleP99Ms: number;
  readonly idleMaxMs: number;
  readonly grownMb: number;
  readonly kbPerNode: number;
  readonly queueP99Ms: number;
  readonly cpuS: number;
};

/** Graphs of ten thousand nodes from the acceptance to the end: who waits for them, and what they hold. */
export const graphs: Bench = {
  name: 'graphs',
  needs: [],
  async run(context) {
    const rows: Row[] = [];
    for (const [shape, graphOf] of Object.entries(SHAPES)) {
      for (const mode of ['embedded', 'in front of a Holdover'] as const) {
        const runs: Run[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          runs.push(await runOne(context, graphOf(NODES), mode));
        }
        rows.push(...rowsOf(`${NODES} nodes, ${shape}, ${mode}`, runs));
      }
    }
    return rows;
  },
};

/** Each in a server of its own: no result is taken from a cache, no memory from a run before. */
async function runOne(context: Context, graph: Graph, mode: string): Promise<Run> {
  const { workDir, keep } = context;
  const behind = mode === 'embedded' ? undefined : await keep(startHoldover({ workDir }));
  const args = behind ? ['--upstream', behind.url] : [];
  const server = await keep(startHoldover({ workDir, args, watchLoop: true }));
  try {
    await run(server, { '1': { class_type: 'PreviewAny', inputs: { source: 'first' } } });
    return await run(server, graph);
  } finally {
    await server.stop();
    await behind?.stop();
  }
}

async function run(server: Program, graph: Graph): Promise<Run> {
  const heard = await listen(server.url.replace('http', 'ws'), 'bench');
  await server.ask({ reset: true });
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const idle = await server.ask<LoopDelay>({ reset: true });
  server.resetPeak();
  const baseBytes = server.rssBytes();
  const cpuBefore = server.cpuNs();
  const body = JSON.stringify({ client_id: 'bench', prompt: graph });
  const answer = await fetch(`${server.url}/prompt`, { method: 'POST', body });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.arrayBuffer();
  await server.ask({ reset: true });
  const waits = pollQueue(server);
  await heard.ended;
  const queueMs = await waits();
  const delay = await server.ask<LoopDelay>({});
  heard.close();
  return {
    ...delay,
    idleP99Ms: idle.p99Ms,
    idleMaxMs: idle.maxMs,
    grownMb: (server.peakRssBytes() - baseBytes) / 1e6,
    kbPerNode: heard.bytes() / 1000 / Object.keys(graph).length,
    queueP99Ms: queueMs.toSorted((a, b) => a - b)[Math.floor(queueMs.length * 0.99)] ?? 0,
    cpuS: (server.cpuNs() - cpuBefore) / 1e9,
  };
}

/** Asks something small all the time; tells how long each answer took. */
function pollQueue(server: Program): () => Promise<readonly number[]> {
  const took: number[] = [];
  let isOver = false;
  const polling = (async () => {
    while (!isOver) {
      const startedAt = performance.now();
      await (await fetch(`${server.url}/prompt`)).arrayBuffer();
      took.push(performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  })();
  return async () => {
    isOver = true;
    await polling;
    return took;
  };
}

type More = { readonly most?: number; readonly idle?: 'idleP99Ms' | 'idleMaxMs' };

function rowsOf(name: string, runs: readonly Run[]): Row[] {
  const row = (figure: string, unit: string, key: keyof Run, more: More = {}): Row => {
    const { most, idle } = more;
    const values = runs.map((one) => one[key]);
    const worst = Math.max(...values);
    return {
      bench: 'graphs',
      figure: `${name}: ${figure}`,
      unit,
      holdover: median(values),
      ...(idle && {
        reference: { name: 'the same server idle', value: median(runs.map((one) => one[idle])) },
      }),
      reached: `at most ${Number(worst.toPrecision(3))} ${unit}`,
      target: most === undefined ? '–' : `≤ ${most} ${unit}`,
      holds: most === undefined ? undefined : worst <= most,
    };
  };
  return [
    row('event-loop delay p99', 'ms', 'p99Ms', { most: MOST.p99Ms, idle: 'idleP99Ms' }),
    row('event-loop delay, longest', 'ms', 'maxMs', { most: MOST.maxMs, idle: 'idleMaxMs' }),
    row('a small call meanwhile, p99', 'ms', 'queueP99Ms'),
    row('RSS above its base', 'MB', 'grownMb', { most: MOST.grownMb }),
    row('frames for each node', 'KB', 'kbPerNode', { most: MOST.kbPerNode }),
    row('processor time', 's', 'cpuS'),
  ];
}
