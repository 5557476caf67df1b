import { type Bench, type Context } from '../bench.ts';
import { inFrontOf, startHoldover, withFar } from '../holdover.ts';
import { type Sample, interleave, minus, quantile, ratioRow } from '../measure.ts';
import { type Program, startOurs } from '../program.ts';
import type { Checkout } from './checkouts.ts';
import { FIRST, firstPrompts, measureFirst, measureFirstOf } from './first-prompts.ts';
import { startRelayFloor } from './floors.ts';

/** The first prompts through a Holdover in front of a second one; the far one is the reference's for both. */
export const relay = (reference: Checkout): Bench => ({
  name: 'relay',
  needs: [],
  async run(context) {
    const prompter = await context.keep(startOurs('against/prompter', { side: 'load' }));
    const contestants = {
      subject: () => through(context, { prompter, far: reference.dir }),
      direct: () => directly(context, { prompter, far: reference.dir }),
      reference: () => through(context, { prompter, far: reference.dir, near: reference.dir }),
      floor: () => throughFloor(context, { prompter, far: reference.dir }),
    };
    await interleave(1, contestants);
    const found = await interleave(context.rounds, contestants);
    return rowsOf(reference, found);
  },
});

type Way = { readonly prompter: Program; readonly far: string; readonly near?: string };

function through({ workDir }: Context, { prompter, far, near }: Way): Promise<Sample> {
  const options = { workDir, checkout: near };
  return inFrontOf(far, options, (nearOptions) => measureFirst(prompter, nearOptions));
}

function throughFloor({ workDir }: Context, { prompter, far }: Way): Promise<Sample> {
  return withFar({ workDir, far }, (upstream) =>
    measureFirstOf(prompter, () => startRelayFloor({ workDir, upstream })),
  );
}

async function directly({ workDir }: Context, { prompter, far }: Way): Promise<Sample> {
  const server = await startHoldover({ workDir, checkout: far, side: 'load' });
  try {
    const { endMs } = await firstPrompts(prompter, server.url);
    return { value: quantile(endMs, 0.5) };
  } finally {
    await server.stop();
  }
}

type Found = Readonly<Record<'subject' | 'direct' | 'reference' | 'floor', readonly Sample[]>>;

function rowsOf(reference: Checkout, { subject, direct, reference: others, floor }: Found) {
  const name = reference.commit;
  const against = { name, samples: others };
  const common = { bench: 'relay', unit: 'ms', samples: subject, against } as const;
  const added = { name, samples: minus(others, direct) };
  const title = `first ${FIRST} prompts through a second Holdover`;
  return [
    ratioRow({
      ...common,
      figure: `${title}: POST to terminal frame, p50`,
      target: { kind: 'at most', ratio: 0.5 },
    }),
    ratioRow({ ...common, figure: 'the same, p99', value: 'p99Ms' }),
    ratioRow({
      ...common,
      figure: 'what the near one adds to the p50, aim 3 ms',
      samples: minus(subject, direct),
      against: added,
      target: { kind: 'at most', ratio: 0.35 },
    }),
    ratioRow({
      ...common,
      figure: `${title}: processor time of the near one, that of an idle process taken off`,
      value: 'cpuMs',
      target: { kind: 'at most', ratio: 0.45 },
    }),
    ratioRow({ ...common, figure: 'the same, from the spawn on', value: 'allCpuMs' }),
    ratioRow({ ...common, samples: floor, figure: 'floor: POST to terminal frame, p50' }),
    ratioRow({
      ...common,
      figure: 'floor: what it adds to the p50',
      samples: minus(floor, direct),
      against: added,
    }),
    ratioRow({ ...common, samples: floor, figure: 'floor: processor time', value: 'cpuMs' }),
  ];
}
