import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, Context } from '../bench.ts';
import { inFrontOf, startHoldover, withFar } from '../holdover.ts';
import { type Row, type Sample, interleave, ratioRow } from '../measure.ts';
import { type Program, startOurs } from '../program.ts';
import type { Checkout } from './checkouts.ts';
import { startFloor, startRelayFloor } from './floors.ts';
import type { PromptTimes, Prompts } from './prompts.ts';

const CONNECTIONS = [8, 64] as const;
const WARM_UP = 30;
const SETTLE_MS = 1000;
const COUNTS = { embedded: 400, 'through a second Holdover': 200 } as const;

type Mode = keyof typeof COUNTS;

/** Prompts a second: posted as fast as they are answered, and until the last of them has ended. */
export const rates = (reference: Checkout): Bench => ({
  name: 'rates',
  needs: [],
  async run(context) {
    const prompter = await context.keep(startOurs('against/prompter', { side: 'load' }));
    const rows: Row[] = [];
    for (const mode of Object.keys(COUNTS) as Mode[]) {
      for (const connections of CONNECTIONS) {
        const load = { prompter, mode, connections, far: reference.dir };
        const contestants = {
          subject: () => measure(context, load),
          reference: () => measure(context, { ...load, checkout: reference.dir }),
          floor: () => measureFloor(context, load),
        };
        const found = await interleave(context.rounds, contestants);
        rows.push(...rowsOf(found, { title: `${mode}, ${connections} connections`, reference }));
      }
    }
    return rows;
  },
});

type Load = {
  readonly prompter: Program;
  readonly mode: Mode;
  readonly connections: number;
  /** The checkout that runs the jobs of one that is not embedded. */
  readonly far: string;
  readonly checkout?: string;
};

async function measure({ workDir }: Context, load: Load): Promise<Sample> {
  const { mode, far, checkout } = load;
  const options = { workDir, checkout };
  if (mode === 'embedded') return rateOf(load, startHoldover(options));
  return inFrontOf(far, options, (near) => rateOf(load, startHoldover(near)));
}

async function measureFloor({ workDir }: Context, load: Load): Promise<Sample> {
  const { mode, far } = load;
  if (mode === 'embedded') return rateOf(load, startFloor(workDir));
  return withFar({ workDir, far }, (upstream) =>
    rateOf(load, startRelayFloor({ workDir, upstream })),
  );
}

async function rateOf(load: Load, starting: Promise<Program>): Promise<Sample> {
  const { prompter, connections, mode } = load;
  const server = await starting;
  const ask = (prompts: Omit<Prompts, 'url'>) =>
    prompter.ask<PromptTimes>({ url: server.url, ...prompts });
  try {
    await delay(SETTLE_MS);
    const pace = 'each after the end of the one before';
    await ask({ count: WARM_UP, connections: 1, pace });
    const cpuBefore = server.cpuNs();
    const count = COUNTS[mode];
    const times = await ask({ count, connections, pace: 'each after an answer' });
    const cpuUs = (server.cpuNs() - cpuBefore) / 1000 / count;
    const perSecond = (ms: number) => count / (ms / 1000);
    const finished = perSecond(times.finishedMs);
    return { value: perSecond(times.acceptedMs), cpuUs, more: { finished } };
  } finally {
    await server.stop();
  }
}

function rowsOf(
  found: Readonly<Record<'subject' | 'reference' | 'floor', readonly Sample[]>>,
  { title, reference }: { readonly title: string; readonly reference: Checkout },
): Row[] {
  const common = {
    bench: 'rates',
    unit: 'prompts/s',
    samples: found.subject,
    against: { name: reference.commit, samples: found.reference },
    cpuUnit: 'µs/prompt',
  } as const;
  const target = { kind: 'at least', ratio: 2 } as const;
  const floor = { ...common, samples: found.floor };
  return [
    ratioRow({ ...common, target, figure: `${title}: accepted` }),
    ratioRow({ ...common, target, figure: `${title}: finished`, value: 'finished' }),
    ratioRow({ ...floor, figure: `${title}: floor, accepted` }),
    ratioRow({ ...floor, figure: `${title}: floor, finished`, value: 'finished' }),
  ];
}
