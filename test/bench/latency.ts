import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { MEMORY_DIR, NO_FOLLOWING, startHoldover } from './holdover.ts';
import { smallGraph } from './job.ts';
import {
  type Row,
  type Sample,
  cpuOf,
  interleave,
  median,
  rounded,
  spreadOf,
  valuesOf,
} from './measure.ts';
import { type Program, startOurs } from './program.ts';
import { wrk } from './wrk.ts';

const TARGET_MS = 0.35;

/** The time Holdover adds to a call of one client, compared with the origin itself. */
export const latency: Bench = {
  name: 'latency',
  needs: ['wrk'],
  async run({ workDir, rounds, keep }) {
    const origin = await keep(startOurs('node-origin', { side: 'load' }));
    const dataDir = mkdtempSync(join(MEMORY_DIR, 'holdover-bench-'));
    const args = ['--upstream', origin.url, '--object-info', 'embedded', ...NO_FOLLOWING];
    const passing = await keep(startHoldover({ workDir, args }));
    const translating = await keep(startHoldover({ workDir, dataDir, args }));
    const proxy = await keep(startOurs('http-proxy', { side: 'subject', args: [origin.url] }));
    const load = (program: Program, path: string) =>
      wrk(program, {
        workDir,
        url: program.url + path,
        connections: 1,
        seconds: 1,
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: `{"prompt":${smallGraph()},"workflow":{}}`,
      });
    const contestants = {
      direct: () => load(origin, '/api/v2/jobs'),
      /** No target: it tells what any program in between adds on this machine. */
      proxied: () => load(proxy, '/v1/models/bench/model'),
      model: () => load(passing, '/v1/models/bench/model'),
      passed: () => load(passing, '/api/v2/jobs'),
      translated: () => load(translating, '/prompt'),
    };
    try {
      await interleave(2, contestants);
      const samples = await interleave(rounds, contestants);
      const { direct, proxied, model, passed, translated } = samples;
      return [
        added('POST to a model passed through', model, direct),
        { ...added('the same by http-proxy 1.18', proxied, direct), target: '–', holds: undefined },
        added('POST of a job passed through, and taken into v1', passed, direct),
        added('POST /prompt translated, store in memory', translated, direct),
      ];
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};

function added(figure: string, samples: readonly Sample[], direct: readonly Sample[]): Row {
  const ours = valuesOf(samples, 'p50Ms');
  const theirs = valuesOf(direct, 'p50Ms');
  const addedMs = ours.map((one, i) => one - (theirs[i] ?? Number.NaN));
  const cpu = cpuOf(samples);
  return {
    bench: 'latency',
    figure: `${figure}, one connection, p50`,
    unit: 'ms',
    holdover: median(ours),
    reference: { name: 'bare node:http origin', value: median(theirs) },
    reached: `+${rounded(median(addedMs))} ms`,
    target: `≤ +${TARGET_MS} ms`,
    holds: median(addedMs) <= TARGET_MS,
    spread: spreadOf(addedMs),
    ...(cpu !== undefined && { cpu: { holdover: cpu, unit: 'µs/req' } }),
  };
}
