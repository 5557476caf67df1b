import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { type Sample, interleave, ratioRow } from '../measure.ts';
import { timeToAnswer } from '../start.ts';
import type { Checkout } from './checkouts.ts';

/** From the command to the first answer, with an empty data directory. */
export const start = (reference: Checkout): Bench => ({
  name: 'start',
  needs: [],
  async run({ workDir, rounds }) {
    const timed = (checkout?: string): Promise<Sample> =>
      timeToAnswer({ workDir, checkout, dataDir: mkdtempSync(join(workDir, 'empty-')) });
    const contestants = { subject: () => timed(), reference: () => timed(reference.dir) };
    await interleave(1, contestants);
    const found = await interleave(rounds, contestants);
    return [
      ratioRow({
        bench: 'start',
        figure: 'start to first answer, empty',
        unit: 'ms',
        samples: found.subject,
        against: { name: reference.commit, samples: found.reference },
        target: { kind: 'at most', ratio: 0.7 },
        cpuUnit: 'µs',
      }),
    ];
  },
});
