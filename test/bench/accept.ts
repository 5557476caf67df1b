import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { type Sample, interleave, ratioRow } from './measure.ts';
import { type Program, startOurs } from './program.ts';

const MS = 1200;

type Written = { readonly rows: number; readonly ms: number };

/** Durable rows a second, against appending to a file and syncing it. */
export const accept: Bench = {
  name: 'accept',
  needs: [],
  async run({ workDir, rounds, keep }) {
    const dir = mkdtempSync(join(workDir, 'accept-'));
    const ledger = await keep(startOurs('ledger-rows', { side: 'subject', args: [dir] }));
    const floor = await keep(startOurs('fdatasync-rows', { side: 'subject', args: [dir] }));
    const contestants = {
      floor: () => written(floor, 1),
      sequential: () => written(ledger, 1),
      concurrent: () => written(ledger, 16),
    };
    await interleave(1, contestants);
    const samples = await interleave(rounds, contestants);
    const against = { name: 'append + fdatasync', samples: samples.floor };
    const common = { bench: 'accept', unit: 'rows/s', against, cpuUnit: 'µs/row' } as const;
    return [
      ratioRow({
        ...common,
        figure: '1 KB accept row, one after the other',
        samples: samples.sequential,
        target: { kind: 'at least', ratio: 0.8 },
      }),
      ratioRow({
        ...common,
        figure: 'the same, 16 at a time',
        samples: samples.concurrent,
        target: { kind: 'at least', ratio: 4 },
      }),
    ];
  },
};

async function written(program: Program, lanes: number): Promise<Sample> {
  const cpuBefore = program.cpuNs();
  const { rows, ms } = await program.ask<Written>({ lanes, forMs: MS });
  const cpuUs = (program.cpuNs() - cpuBefore) / 1000 / rows;
  return { value: rows / (ms / 1000), cpuUs };
}
