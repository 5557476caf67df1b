import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { installPackages } from '../../support/clients/python-packages.ts';
import type { Bench, Context } from '../bench.ts';
import { THIS_CHECKOUT, startHoldover } from '../holdover.ts';
import { type Row, type Sample, ratioRow } from '../measure.ts';
import { freePort } from '../nginx.ts';
import { type Program, startOurs, startProgram } from '../program.ts';
import type { Checkout } from './checkouts.ts';
import type { PromptTimes, Prompts } from './prompts.ts';
import { type CallCounts, type UpstreamCall, countCalls, timeline } from './upstream-calls.ts';

const WARM_UP = 5;
const COUNTED = 9;
/** A call that no client waits for may come as late. */
const QUIET_MS = 400;

/** The calls of a prompt on the upstream, seen by a program in between. */
export const calls = (reference: Checkout): Bench => ({
  name: 'calls',
  needs: ['python3'],
  async run(context) {
    const engine = await context.keep(start(context, reference.dir));
    const upstreams = {
      'comfy-api-proxy': await context.keep(startComfyApiProxy(engine.url)),
      'a second Holdover': engine,
    };
    const prompter = await context.keep(startOurs('against/prompter', { side: 'load' }));
    const rows: Row[] = [];
    for (const [name, upstream] of Object.entries(upstreams)) {
      const recorder = await context.keep(
        startOurs('against/recorder', { side: 'load', args: [upstream.url] }),
      );
      const count = (checkout: string, title: string) =>
        counted(context, { prompter, recorder, engine, checkout, title });
      const samples = await count(THIS_CHECKOUT, `in front of ${name}`);
      const others = await count(reference.dir, `in front of ${name}, ${reference.commit}`);
      rows.push(...rowsOf(name, samples, { name: reference.commit, samples: others }));
    }
    return rows;
  },
});

function start({ workDir }: Context, checkout: string): Promise<Program> {
  return startHoldover({ workDir, checkout, side: 'load' });
}

/** The self-hosted v2 server, in front of an engine that speaks v1. */
async function startComfyApiProxy(engineUrl: string): Promise<Program> {
  const requirements = join(THIS_CHECKOUT, 'test/proxy/requirements.txt');
  const installed = await installPackages('comfy-api-proxy', requirements);
  if (!installed.ok) throw new Error(`comfy-api-proxy was not installed: ${installed.why}`);
  const flags = ['run', '--comfyui', engineUrl, '--port', String(await freePort())];
  return startProgram({
    command: 'python3',
    args: ['-m', 'comfy_api_proxy.cli', ...flags],
    side: 'load',
    env: { PYTHONPATH: installed.packages, PYTHONUNBUFFERED: '1' },
  });
}

type Counted = {
  readonly prompter: Program;
  readonly recorder: Program;
  readonly engine: Program;
  readonly checkout: string;
  readonly title: string;
};

/** Counts the calls of one prompt after another, and prints when those of the last one were. */
async function counted({ workDir }: Context, way: Counted): Promise<Sample[]> {
  const { prompter, recorder, engine, checkout, title } = way;
  const args = ['--upstream', recorder.url, '--object-info', `${engine.url}/object_info`];
  const server = await startHoldover({ workDir, checkout, args });
  const one = async () => {
    await recorder.ask({});
    const times = await prompter.ask<PromptTimes>({
      url: server.url,
      count: 1,
      connections: 1,
      pace: 'each after the end of the one before',
    } satisfies Prompts);
    await delay(QUIET_MS);
    const { calls: seen } = await recorder.ask<{ calls: UpstreamCall[] }>({});
    return { seen, postedMs: times.startedAtMs, frameMs: times.startedAtMs + times.finishedMs };
  };
  try {
    await delay(QUIET_MS);
    for (let left = WARM_UP; left > 0; left--) await one();
    const samples: Sample[] = [];
    for (let left = COUNTED; left > 0; left--) {
      const { seen, postedMs, frameMs } = await one();
      samples.push(sampleOf(countCalls(seen, frameMs)));
      if (left > 1) continue;
      const lines = [
        ...timeline(seen, postedMs),
        `+${(frameMs - postedMs).toFixed(1)} ms the frame`,
      ];
      process.stdout.write(`  ${title}\n${lines.map((line) => `    ${line}\n`).join('')}`);
    }
    return samples;
  } finally {
    await server.stop();
  }
}

function sampleOf({ calls: value, chain, afterTerminal }: CallCounts): Sample {
  return { value, more: { chain, afterTerminal } };
}

type Against = { readonly name: string; readonly samples: readonly Sample[] };

function rowsOf(upstream: string, samples: readonly Sample[], against: Against): Row[] {
  const common = { bench: 'calls', unit: 'calls', samples, against } as const;
  return [
    ratioRow({ ...common, figure: `in front of ${upstream}: calls upstream of a prompt` }),
    ratioRow({ ...common, figure: 'of which one waits for another, at most', value: 'chain' }),
    ratioRow({
      ...common,
      figure: 'after the terminal event, before the frame',
      value: 'afterTerminal',
    }),
  ];
}
