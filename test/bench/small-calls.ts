import { type Bench, type Context, running } from './bench.ts';
import { finishedJobs, promptBody } from './job.ts';
import type { Contestants, Figures } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import type { Called, Calls } from './programs/caller.ts';

const LOAD = { method: 'POST', connections: 64, seconds: 3 } as const;

/** `POST /prompt`, 4 KB, translated, validated and on disk; the proxy parses and stores nothing. */
export const accepted: Bench = {
  name: 'accepted',
  needs: ['nginx'],
  program: 'http-proxy',
  prepare: (context) => called(context, { ...LOAD, path: '/prompt', body: promptBody() }),
};

/** A small call that is passed through. */
export const passed: Bench = {
  name: 'passed',
  needs: ['nginx'],
  program: 'http-proxy',
  prepare: (context) => called(context, { ...LOAD, path: '/v1/models/p/m', body: promptBody() }),
};

async function called(context: Context, calls: Omit<Calls, 'url'>): Promise<Contestants> {
  const { workDir, keep } = context;
  const service = await keep(startNginx({ workDir, side: 'load', server: finishedJobs() }));
  const caller = await keep(startOurs('caller'));
  const args = ['--upstream', service.url, '--object-info', 'embedded'];
  return running(context, args, {
    startProgram: () => startOurs('http-proxy', { side: 'subject', args: [service.url] }),
    measure: (program) => callsOf(caller, { program, calls }),
  });
}

/** Calls in a closed loop, and what they cost the program they went to. */
async function callsOf(
  caller: Program,
  { program, calls }: { readonly program: Program; readonly calls: Omit<Calls, 'url'> },
): Promise<Figures> {
  const cpuBefore = program.cpuNs();
  const { count, ms } = await caller.ask<Called>({ url: program.url, ...calls });
  return {
    'POST of 4 KB, 64 connections, calls a second': count / (ms / 1000),
    'the same, processor time of each, µs': (program.cpuNs() - cpuBefore) / 1000 / count,
  };
}
