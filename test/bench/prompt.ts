import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Context } from './bench.ts';
import { MEMORY_DIR, startHoldover } from './holdover.ts';
import { jobText, smallGraph } from './job.ts';
import { type Sample, interleave, ratioRow } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import { type Load, wrk } from './wrk.ts';

/** Jobs wait there, so that nothing but the acceptance is measured. */
const NO_FOLLOWING = JSON.stringify({
  pollMs: {
    watched: { first: 3_600_000, last: 3_600_000 },
    unwatched: { first: 3_600_000, last: 3_600_000 },
    queued: { first: 3_600_000, last: 3_600_000 },
  },
});

/** `POST /prompt`, 4 KB, translated, validated and on record, against the same bytes passed by http-proxy. */
export const prompt: Bench = {
  name: 'prompt',
  needs: ['nginx', 'wrk'],
  async run(context) {
    const { workDir, rounds, keep } = context;
    const queued = await keep(startV2(workDir, 'queued'));
    const done = await keep(startV2(workDir, 'succeeded'));
    const proxy = await keep(startOurs('http-proxy', { side: 'subject', args: [queued.url] }));
    const passed = () => wrk(proxy, { ...post(workDir, proxy, '/api/v2/jobs'), seconds: 2 });
    await passed();
    const samples = await interleave(rounds, {
      proxy: passed,
      disk: () => accepted(context, { upstream: queued.url, dataRoot: workDir }),
      memory: () => accepted(context, { upstream: queued.url, dataRoot: MEMORY_DIR }),
      life: () => accepted(context, { upstream: done.url, dataRoot: workDir }),
    });
    const against = { name: 'http-proxy 1.18, keep-alive agent', samples: samples.proxy };
    const common = { bench: 'prompt', unit: 'req/s', against, cpuUnit: 'µs/req' } as const;
    return [
      ratioRow({
        ...common,
        figure: 'accepted, store in memory',
        samples: samples.memory,
        target: { kind: 'at least', ratio: 0.85 },
      }),
      ratioRow({
        ...common,
        figure: 'accepted, durable row on disk',
        samples: samples.disk,
        target: { kind: 'at least', ratio: 0.5 },
      }),
      ratioRow({
        ...common,
        figure: 'whole life: accepted, followed to its end, history written',
        samples: samples.life,
      }),
    ];
  },
};

/** A v2 service in nginx: takes every job, and says of each that it is in this state. */
function startV2(workDir: string, status: 'queued' | 'succeeded'): Promise<Program> {
  const server = `
    default_type application/json;
    location = /api/v2/jobs { return 201 '${jobText('$request_id', status)}'; }
    location ~ ^/api/v2/jobs/(?<job>[0-9a-f]+)$ { return 200 '${jobText('$job', status)}'; }
    location / { return 404 '{"error":{"code":"not_found","message":"none","details":null}}'; }`;
  return startNginx({ workDir, side: 'load', server });
}

/** A new server for each round: prompts that wait pile up. */
async function accepted(
  { workDir }: Context,
  { upstream, dataRoot }: { readonly upstream: string; readonly dataRoot: string },
): Promise<Sample> {
  const dataDir = mkdtempSync(join(dataRoot, 'holdover-bench-'));
  const args = [
    ...['--upstream', upstream, '--object-info', 'embedded'],
    ...['--upstream-streams', '0', '--upstream-limits', NO_FOLLOWING],
  ];
  const holdover = await startHoldover({ workDir, dataDir, args });
  try {
    await wrk(holdover, { ...post(workDir, holdover, '/prompt'), seconds: 1 });
    return await wrk(holdover, { ...post(workDir, holdover, '/prompt'), seconds: 2 });
  } finally {
    await holdover.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function post(workDir: string, program: Program, path: string): Omit<Load, 'seconds'> {
  return {
    workDir,
    url: program.url + path,
    connections: 64,
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: `{"client_id":"bench","prompt":${smallGraph()}}`,
  };
}
