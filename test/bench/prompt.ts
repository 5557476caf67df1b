import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Context } from './bench.ts';
import { MEMORY_DIR, NO_FOLLOWING, startHoldover } from './holdover.ts';
import { jobLocations, smallGraph } from './job.ts';
import { interleave, ratioRow } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import { type Load, wrk } from './wrk.ts';

/** `POST /prompt`, 4 KB, translated, validated and on record, against the same bytes passed by http-proxy. */
export const prompt: Bench = {
  name: 'prompt',
  needs: ['nginx', 'wrk'],
  async run(context) {
    const { workDir, rounds, keep } = context;
    const queued = await keep(startV2(workDir, 'queued'));
    const done = await keep(startV2(workDir, 'succeeded'));
    const proxy = await keep(startOurs('http-proxy', { side: 'subject', args: [queued.url] }));
    const memoryDir = mkdtempSync(join(MEMORY_DIR, 'holdover-bench-'));
    const disk = await open(context, { upstream: queued, dataRoot: workDir });
    const memory = await open(context, { upstream: queued, dataRoot: memoryDir });
    const life = await open(context, { upstream: done, dataRoot: workDir });
    const load = (program: Program, path: string) => wrk(program, post(workDir, program, path));
    const contestants = {
      proxy: () => load(proxy, '/api/v2/jobs'),
      disk: () => load(disk, '/prompt'),
      memory: () => load(memory, '/prompt'),
      life: () => load(life, '/prompt'),
    };
    const samples = await interleave(2, contestants)
      .then(() => interleave(rounds, contestants))
      .finally(() => rmSync(memoryDir, { recursive: true, force: true }));
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

function startV2(workDir: string, status: 'queued' | 'succeeded'): Promise<Program> {
  return startNginx({ workDir, side: 'load', server: jobLocations(status) });
}

type Kind = { readonly upstream: Program; readonly dataRoot: string };

async function open({ workDir, keep }: Context, { upstream, dataRoot }: Kind): Promise<Program> {
  const dataDir = mkdtempSync(join(dataRoot, 'holdover-bench-'));
  const args = ['--upstream', upstream.url, '--object-info', 'embedded', ...NO_FOLLOWING];
  return keep(startHoldover({ workDir, dataDir, args }));
}

function post(workDir: string, program: Program, path: string): Load {
  return {
    workDir,
    url: program.url + path,
    connections: 64,
    seconds: 2,
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: `{"client_id":"bench","prompt":${smallGraph()}}`,
  };
}
