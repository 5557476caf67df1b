import type { Bench } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { smallGraph } from './job.ts';
import { interleave, ratioRow } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import { wrk } from './wrk.ts';

const ANSWER = `return 201 '{"id":"0123456789abcdef","status":"queued","note":"${'x'.repeat(72)}"}';`;

const MODEL = '/v1/models/p/m';

/** JavaScript is compiled as it is used; of all contestants what they do in the long run counts. */
const WARM_SECONDS = 5;

/** A small POST passed through as it is, against http-proxy with an agent that keeps connections. */
export const passthrough: Bench = {
  name: 'passthrough',
  needs: ['nginx', 'wrk'],
  async run({ workDir, rounds, keep }) {
    const server = `location / { default_type application/json; ${ANSWER} }`;
    const origin = await keep(startNginx({ workDir, side: 'load', server }));
    const args = ['--upstream', origin.url, '--object-info', 'embedded'];
    const holdover = await keep(startHoldover({ workDir, args }));
    const proxy = await keep(startOurs('http-proxy', { side: 'subject', args: [origin.url] }));
    const load = (program: Program, seconds: number, path = '/api/v2/jobs') =>
      wrk(program, {
        workDir,
        url: program.url + path,
        connections: 64,
        seconds,
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: `{"workflow":${smallGraph()}}`,
      });
    for (const program of [holdover, proxy]) await load(program, WARM_SECONDS);
    await load(holdover, WARM_SECONDS, MODEL);
    const samples = await interleave(rounds, {
      holdover: () => load(holdover, 2),
      proxy: () => load(proxy, 2),
      /** Nobody listens in on these: a job that is submitted becomes a prompt of v1 as well. */
      routed: () => load(holdover, 2, MODEL),
    });
    const against = { name: 'http-proxy 1.18, keep-alive agent', samples: samples.proxy };
    const common = { bench: 'passthrough', samples: samples.holdover, against } as const;
    return [
      ratioRow({
        ...common,
        figure: 'small POST of a job, 64 connections',
        unit: 'req/s',
        target: { kind: 'at least', ratio: 1.2 },
        cpuUnit: 'µs/req',
      }),
      ratioRow({
        ...common,
        figure: 'the same, p99',
        unit: 'ms',
        value: 'p99Ms',
        target: { kind: 'at most', ratio: 1 },
        cpuUnit: 'µs/req',
      }),
      ratioRow({
        ...common,
        samples: samples.routed,
        figure: 'small POST to a model, 64 connections',
        unit: 'req/s',
        target: { kind: 'at least', ratio: 1.2 },
        cpuUnit: 'µs/req',
      }),
    ];
  },
};
