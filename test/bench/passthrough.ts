import type { Bench } from './bench.ts';
import { NO_FOLLOWING, startHoldover } from './holdover.ts';
import { jobLocations, smallGraph } from './job.ts';
import { type Sample, interleave, ratioRow } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import { wrk } from './wrk.ts';

const MODEL = '/v1/models/p/m';
const JOBS = '/api/v2/jobs';
const ANSWER = `return 201 '{"id":"$request_id","status":"queued","note":"${'x'.repeat(56)}"}';`;

/** JavaScript is compiled as it is used; of all contestants what they do in the long run counts. */
const WARM_SECONDS = 5;

/** A small POST passed through as it is, against http-proxy with an agent that keeps connections. */
export const passthrough: Bench = {
  name: 'passthrough',
  needs: ['nginx', 'wrk'],
  async run({ workDir, rounds, keep }) {
    const server = `location ${MODEL} { ${ANSWER} } ${jobLocations('queued')}`;
    const origin = await keep(startNginx({ workDir, side: 'load', server }));
    const args = ['--upstream', origin.url, '--object-info', 'embedded', ...NO_FOLLOWING];
    const holdover = await keep(startHoldover({ workDir, args }));
    const proxy = await keep(startOurs('http-proxy', { side: 'subject', args: [origin.url] }));
    const load = (program: Program, path: string, seconds = 2) =>
      wrk(program, {
        workDir,
        url: program.url + path,
        connections: 64,
        seconds,
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: `{"workflow":${smallGraph()}}`,
      });
    await load(holdover, MODEL, WARM_SECONDS);
    await load(proxy, MODEL, WARM_SECONDS);
    const model = await interleave(rounds, {
      ours: () => load(holdover, MODEL),
      proxy: () => load(proxy, MODEL),
    });
    // Afterwards: thousands of jobs that wait keep a process busy when its round is over.
    await load(holdover, JOBS, WARM_SECONDS);
    const job = await interleave(rounds, {
      ours: () => load(holdover, JOBS),
      proxy: () => load(proxy, MODEL),
    });
    const against = (samples: readonly Sample[]) => ({
      name: 'http-proxy 1.18, keep-alive agent',
      samples,
    });
    const common = { bench: 'passthrough', cpuUnit: 'µs/req' } as const;
    const passed = { ...common, samples: model.ours, against: against(model.proxy) };
    const target = { kind: 'at least', ratio: 0.4 } as const;
    return [
      ratioRow({
        ...passed,
        figure: 'small POST to a model, 64 connections',
        unit: 'req/s',
        target,
      }),
      ratioRow({
        ...passed,
        figure: 'the same, p99',
        unit: 'ms',
        value: 'p99Ms',
        target: { kind: 'at most', ratio: 2 },
      }),
      ratioRow({
        ...common,
        samples: job.ours,
        against: against(job.proxy),
        figure: 'small POST of a job, taken into v1 as well',
        unit: 'req/s',
        target,
      }),
    ];
  },
};
