import { setTimeout as delay } from 'node:timers/promises';
import { growing } from '../../support/graphs/workflows.ts';
import type { Bench, Context } from '../bench.ts';
import {
  type HoldoverOptions,
  WATCH_HEAP,
  inFrontOf,
  startHoldover,
  withFar,
} from '../holdover.ts';
import {
  type Row,
  type Sample,
  interleave,
  median,
  ratioRow,
  rounded,
  valuesOf,
} from '../measure.ts';
import { type Program, startOurs } from '../program.ts';
import type { Checkout } from './checkouts.ts';
import { startMemoryFloor, startRelayFloor } from './floors.ts';
import type { PromptTimes, Prompts } from './prompts.ts';

const SETTLE_MS = 3000;
const WARM_UP = 100;
const WAITING = 1000;
const MOST_KB = 10;
/** Each takes half a minute, and the heap hardly differs from round to round. */
const MOST_ROUNDS = 3;
const MODES = ['embedded', 'through a second Holdover'] as const;

type Mode = (typeof MODES)[number];

/** Resident memory after a start, and what each waiting prompt adds. */
export const memory = (reference: Checkout): Bench => ({
  name: 'memory',
  needs: [],
  async run(context) {
    const prompter = await context.keep(startOurs('against/prompter', { side: 'load' }));
    const rows = await afterStart(context, reference);
    for (const mode of MODES) {
      const waiting = { prompter, mode, far: reference.dir };
      const found = await interleave(Math.min(context.rounds, MOST_ROUNDS), {
        subject: () => behindRunning(context, waiting),
        reference: () => behindRunning(context, { ...waiting, checkout: reference.dir }),
      });
      const against = { name: reference.commit, samples: found.reference };
      const figure = `a waiting prompt, ${mode}, its text taken off`;
      rows.push(
        heapRow(`${figure}: heap`, { samples: found.subject, against }),
        ratioRow({
          bench: 'memory',
          // No target: V8 keeps or gives back whole pages when it likes.
          figure: 'the same, RSS',
          unit: 'KB',
          samples: found.subject,
          against,
          value: 'rssKb',
        }),
      );
    }
    return [...rows, await waitingFloor(context, prompter, reference)];
  },
});

async function afterStart({ workDir, rounds }: Context, reference: Checkout): Promise<Row[]> {
  const measure = (start: () => Promise<Program>) => async (): Promise<Sample> => {
    const server = await start();
    await delay(SETTLE_MS);
    const value = server.rssBytes() / 1e6;
    await server.stop();
    return { value };
  };
  const found = await interleave(rounds, {
    subject: measure(() => startHoldover({ workDir })),
    reference: measure(() => startHoldover({ workDir, checkout: reference.dir })),
    floor: measure(() => startMemoryFloor(workDir)),
  });
  const figure = `RSS ${SETTLE_MS / 1000} s after the ready line`;
  const against = { name: reference.commit, samples: found.reference };
  const common = { bench: 'memory', unit: 'MB', against } as const;
  const target = { kind: 'at most', ratio: 0.7 } as const;
  return [
    ratioRow({ ...common, figure, samples: found.subject, target }),
    ratioRow({ ...common, figure: `floor: ${figure}`, samples: found.floor }),
  ];
}

/** The floor keeps the text of a waiting prompt and two ids; the first 50 have event streams before the figure is taken. */
async function waitingFloor(
  { workDir }: Context,
  prompter: Program,
  { dir: far }: Checkout,
): Promise<Row> {
  const { value } = await withFar({ workDir, far }, async (upstream) => {
    const floor = startRelayFloor({ workDir, upstream, flags: WATCH_HEAP });
    return keptByEach(prompter, await floor);
  });
  return {
    bench: 'memory',
    figure: 'floor: a waiting prompt through a second Holdover, its text taken off: heap',
    unit: 'KB',
    holdover: value,
    reached: `${rounded(value)} KB`,
    target: '–',
    holds: undefined,
  };
}

type Waiting = {
  readonly prompter: Program;
  readonly mode: Mode;
  /** The checkout that runs the jobs of one that is not embedded. */
  readonly far: string;
  readonly checkout?: string;
};

async function behindRunning({ workDir }: Context, waiting: Waiting): Promise<Sample> {
  const { prompter, mode, far, checkout } = waiting;
  const options = { workDir, checkout, watchHeap: true } as const;
  if (mode === 'embedded') return keptByHoldover(prompter, options);
  return inFrontOf(far, options, (near) => keptByHoldover(prompter, near));
}

async function keptByHoldover(prompter: Program, options: HoldoverOptions): Promise<Sample> {
  return keptByEach(prompter, await startHoldover(options), checkWaiting);
}

async function keptByEach(
  prompter: Program,
  server: Program,
  check?: (server: Program) => Promise<void>,
): Promise<Sample> {
  try {
    // Runs for minutes: the others wait behind it.
    const prompt = growing({ steps: 10_000, side: 512 });
    const body = JSON.stringify({ prompt });
    const answer = await fetch(`${server.url}/prompt`, { method: 'POST', body });
    if (!answer.ok) throw new Error(await answer.text());
    await answer.arrayBuffer();
    await post(prompter, server, WARM_UP);
    const before = await held(server);
    const { bodyBytes } = await post(prompter, server, WAITING);
    const after = await held(server);
    await check?.(server);
    const eachKb = (bytes: number) => (bytes - bodyBytes) / WAITING / 1000;
    return {
      value: eachKb(after.heapBytes - before.heapBytes),
      more: { rssKb: eachKb(after.rssBytes - before.rssBytes) },
    };
  } finally {
    await server.stop();
  }
}

function post(prompter: Program, { url }: Program, count: number): Promise<PromptTimes> {
  const pace = 'each after an answer, none followed';
  return prompter.ask({ url, count, connections: 4, pace } satisfies Prompts);
}

async function held(server: Program) {
  const { heldBytes } = await server.ask<{ heldBytes: number }>({});
  return { heapBytes: heldBytes, rssBytes: server.rssBytes() };
}

async function checkWaiting({ url }: Program): Promise<void> {
  const answer = await fetch(`${url}/queue`);
  const queue = (await answer.json()) as Record<string, unknown[]>;
  const { queue_running: running = [], queue_pending: pending = [] } = queue;
  if (running.length === 1 && pending.length === WARM_UP + WAITING) return;
  throw new Error(`${running.length} prompts run and ${pending.length} wait`);
}

function heapRow(
  figure: string,
  compared: {
    readonly samples: readonly Sample[];
    readonly against: { readonly name: string; readonly samples: readonly Sample[] };
  },
): Row {
  const kb = median(valuesOf(compared.samples));
  return {
    ...ratioRow({ bench: 'memory', figure, unit: 'KB', ...compared }),
    reached: `${rounded(kb)} KB`,
    target: `≤ ${MOST_KB} KB`,
    holds: kb <= MOST_KB,
  };
}
