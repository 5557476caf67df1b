import type { Bench, Context } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { type Row, median } from './measure.ts';
import type { Program } from './program.ts';

const ROUNDS = 3;
const POLL_MS = 5;
const IDLE_MS = 1000;

type Body = {
  readonly text: () => string;
  readonly status: number;
  readonly most: { readonly delayMs: number; readonly cpuS?: number };
};

const shown = { class_type: 'PreviewAny', inputs: { source: ['1', 0] } };

/** One output that takes the first of so many nodes: all are checked, few run. */
function manyNodes(count: number): string {
  const node = { class_type: 'PrimitiveInt', inputs: { value: 1 } };
  const nodes = Array.from({ length: count - 1 }, (_, i) => [`${i + 1}`, node]);
  return JSON.stringify({ prompt: { ...Object.fromEntries(nodes), shown } });
}

function base64(bytes: number): string {
  const picture = { class_type: 'PrimitiveString', inputs: { value: 'QUJD'.repeat(bytes / 4) } };
  return JSON.stringify({ prompt: { '1': picture, shown } });
}

function repeated(value: string, bytes: number): string {
  const values = value.repeat(bytes / value.length);
  return `{"prompt":{},"extra_data":{"a":[${values}1]}}`;
}

function emptyNodes(bytes: number): string {
  const nodes = Array.from({ length: bytes / 12 }, (_, i) => `"${i + 1e6}":{}`);
  return `{"prompt":{${nodes.join(',')}}}`;
}

const BODIES: Readonly<Record<string, Body>> = {
  'a graph of 3,000 nodes': {
    text: () => manyNodes(3000),
    status: 200,
    most: { delayMs: 50 },
  },
  'a graph of 10,000 nodes': {
    text: () => manyNodes(10_000),
    status: 200,
    most: { delayMs: 50 },
  },
  '60 MB of base64': { text: () => base64(60e6), status: 200, most: { delayMs: 100 } },
  '1 MB of 1e400': {
    text: () => repeated('1e400,', 1e6),
    status: 400,
    most: { delayMs: 50, cpuS: 0.05 },
  },
  '99 MB of 1e400': { text: () => repeated('1e400,', 99e6), status: 413, most: { delayMs: 50 } },
  '30 MB of []': { text: () => repeated('[],', 30e6), status: 413, most: { delayMs: 50 } },
  '38 MB of empty nodes': { text: () => emptyNodes(38e6), status: 413, most: { delayMs: 50 } },
};

type Run = {
  readonly maxMs: number;
  readonly idleMs: number;
  readonly queueMs: number;
  readonly cpuS: number;
};

/** Large bodies until their answer: how long they hold the event loop, and what another user notices. */
export const bodies: Bench = {
  name: 'bodies',
  needs: [],
  async run({ workDir, keep }: Context) {
    const rows: Row[] = [];
    for (const [name, body] of Object.entries(BODIES)) {
      const runs: Run[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const server = await keep(startHoldover({ workDir, watchLoop: true }));
        try {
          await send(server, manyNodes(2), 200);
          runs.push(await measure(server, body));
        } finally {
          await server.stop();
        }
      }
      rows.push(...rowsOf(name, body, runs));
    }
    return rows;
  },
};

async function send(server: Program, body: string, status: number): Promise<void> {
  const answer = await fetch(`${server.url}/prompt`, { method: 'POST', body });
  const text = await answer.text();
  if (answer.status !== status) throw new Error(text.slice(0, 200));
}

async function measure(server: Program, { text, status }: Body): Promise<Run> {
  const body = text();
  await server.ask({ reset: true });
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const idle = await server.ask<{ maxMs: number }>({ reset: true });
  const cpuBefore = server.cpuNs();
  const waits = pollQueue(server);
  await send(server, body, status);
  const queueMs = await waits();
  const { maxMs } = await server.ask<{ maxMs: number }>({});
  return { maxMs, idleMs: idle.maxMs, queueMs, cpuS: (server.cpuNs() - cpuBefore) / 1e9 };
}

/** Another user looks at the queue all the time; tells the longest wait. */
function pollQueue(server: Program): () => Promise<number> {
  let longest = 0;
  let isOver = false;
  const headers = { 'X-API-Key': 'another user' };
  const polling = (async () => {
    while (!isOver) {
      const startedAt = performance.now();
      await (await fetch(`${server.url}/queue`, { headers })).arrayBuffer();
      longest = Math.max(longest, performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  })();
  return async () => {
    isOver = true;
    await polling;
    return longest;
  };
}

function rowsOf(name: string, { most }: Body, runs: readonly Run[]): Row[] {
  const row = (figure: string, unit: string, key: keyof Run, limit?: number): Row => {
    const values = runs.map((one) => one[key]);
    const isDelay = key === 'maxMs';
    return {
      bench: 'bodies',
      figure: `${name}: ${figure}`,
      unit,
      holdover: median(values),
      ...(isDelay && {
        reference: {
          name: 'the same server idle',
          value: median(runs.map(({ idleMs }) => idleMs)),
        },
      }),
      reached: `at most ${Number(Math.max(...values).toPrecision(3))} ${unit}`,
      target: limit === undefined ? '–' : `≤ ${limit} ${unit}`,
      holds: limit === undefined ? undefined : median(values) <= limit,
    };
  };
  return [
    row('event-loop delay, longest', 'ms', 'maxMs', most.delayMs),
    row('GET /queue of another user, longest', 'ms', 'queueMs', 200),
    row('processor time', 's', 'cpuS', most.cpuS),
  ];
}
