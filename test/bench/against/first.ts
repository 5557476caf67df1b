import type { Bench } from '../bench.ts';
import { interleave, ratioRow } from '../measure.ts';
import { startOurs } from '../program.ts';
import type { Checkout } from './checkouts.ts';
import { startFloor } from './floors.ts';
import { FIRST, measureFirst, measureFirstOf } from './first-prompts.ts';

/** The first prompts after a start, embedded engine. */
export const first = (reference: Checkout): Bench => ({
  name: 'first',
  needs: [],
  async run({ workDir, rounds, keep }) {
    const prompter = await keep(startOurs('against/prompter', { side: 'load' }));
    const contestants = {
      subject: () => measureFirst(prompter, { workDir }),
      reference: () => measureFirst(prompter, { workDir, checkout: reference.dir }),
      floor: () => measureFirstOf(prompter, () => startFloor(workDir)),
    };
    await interleave(1, contestants);
    const { subject: samples, reference: others, floor } = await interleave(rounds, contestants);
    const against = { name: reference.commit, samples: others };
    const common = { bench: 'first', unit: 'ms', samples, against } as const;
    const title = `first ${FIRST} prompts, embedded`;
    return [
      ratioRow({
        ...common,
        figure: `${title}: POST to terminal frame, p50`,
        target: { kind: 'at most', ratio: 0.45 },
      }),
      ratioRow({
        ...common,
        figure: 'the same, p99',
        value: 'p99Ms',
        target: { kind: 'at most', ratio: 0.6 },
      }),
      ratioRow({
        ...common,
        figure: `${title}: processor time, that of an idle process taken off`,
        value: 'cpuMs',
        target: { kind: 'at most', ratio: 0.45 },
      }),
      ratioRow({ ...common, figure: 'the same, from the spawn on', value: 'allCpuMs' }),
      ratioRow({ ...common, samples: floor, figure: 'floor: POST to terminal frame, p50' }),
      ratioRow({ ...common, samples: floor, figure: 'floor: processor time', value: 'cpuMs' }),
    ];
  },
});
