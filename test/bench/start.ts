import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { type HoldoverOptions, startHoldover } from './holdover.ts';
import {
  type Row,
  type Sample,
  interleave,
  median,
  rounded,
  spreadOf,
  valuesOf,
} from './measure.ts';
import { pinned, startOurs } from './program.ts';

const ENTRIES = 10_000;

/** From the command to the first answer, against starting Node itself. */
export const start: Bench = {
  name: 'start',
  needs: [],
  async run({ workDir, rounds, keep }) {
    const full = mkdtempSync(join(workDir, 'full-'));
    const filler = await keep(startOurs('fill-history', { side: 'load' }));
    const empty = mkdtempSync(join(workDir, 'empty-'));
    let emptied = 0;
    await (await untilAnswer({ workDir, dataDir: full })).stop();
    await filler.ask({ dataDir: full, entries: ENTRIES });
    const contestants = {
      node: bareNode,
      empty: () => timeToAnswer({ workDir, dataDir: join(empty, String(emptied++)) }),
      full: () => timeToAnswer({ workDir, dataDir: full }),
    };
    await interleave(1, contestants);
    const samples = await interleave(rounds, contestants);
    const against = samples.node;
    return [
      aboveBareNode('empty', { samples: samples.empty, against, mostMs: 400 }),
      aboveBareNode(`${ENTRIES} history entries`, { samples: samples.full, against, mostMs: 800 }),
    ];
  },
};

/** Milliseconds from the command to the answer to `GET /queue`. */
export async function timeToAnswer(
  options: HoldoverOptions & { readonly dataDir: string },
): Promise<Sample> {
  mkdirSync(options.dataDir, { recursive: true });
  const startedAt = performance.now();
  const holdover = await untilAnswer(options);
  const value = performance.now() - startedAt;
  const cpuUs = holdover.cpuNs() / 1000;
  await holdover.stop();
  return { value, cpuUs };
}

async function untilAnswer(options: HoldoverOptions) {
  const holdover = await startHoldover(options);
  const answer = await fetch(`${holdover.url}/queue`);
  if (!answer.ok) throw new Error(`the first answer is ${answer.status}`);
  await answer.arrayBuffer();
  return holdover;
}

async function bareNode(): Promise<Sample> {
  const startedAt = performance.now();
  const [command, args] = pinned('subject', process.execPath, ['-e', '0']);
  await once(spawn(command, args, { stdio: 'ignore' }), 'exit');
  return { value: performance.now() - startedAt };
}

function aboveBareNode(
  figure: string,
  options: { samples: readonly Sample[]; against: readonly Sample[]; mostMs: number },
): Row {
  const { samples, against, mostMs } = options;
  const [ours, theirs] = [valuesOf(samples), valuesOf(against)];
  const extra = ours.map((one, i) => one - (theirs[i] ?? Number.NaN));
  const cpuMs = median(samples.map(({ cpuUs = Number.NaN }) => cpuUs / 1000));
  return {
    bench: 'start',
    figure: `start to first answer, ${figure}`,
    unit: 'ms',
    holdover: median(ours),
    reference: { name: 'node -e 0', value: median(theirs) },
    reached: `+${rounded(median(extra))} ms`,
    target: `≤ +${mostMs} ms`,
    holds: median(extra) <= mostMs,
    spread: spreadOf(extra),
    cpu: { holdover: cpuMs, unit: 'ms' },
  };
}
