import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, Context } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { smallGraph } from './job.ts';
import { type Row, type Sample, interleave, ratioRow, rounded } from './measure.ts';
import { type Program, startOurs } from './program.ts';
import type { Show } from './programs/v2-service.ts';

const SOCKETS = 100;
const KINDS = { '20 KB pictures': 'picture', '200 B messages': 'text' } as const;

type Kind = (typeof KINDS)[keyof typeof KINDS];
type Sent = { readonly frames: number; readonly ms: number };

/** One job watched by many sockets, against a bare `ws` loop; and what stalled ones cost the others. */
export const fanout: Bench = {
  name: 'fanout',
  needs: [],
  async run(context) {
    return [...(await throughput(context)), ...(await slowConsumers(context))];
  },
};

async function throughput({ rounds, keep }: Context): Promise<Row[]> {
  const programs: Program[] = [];
  for (const name of ['fanout-holdover', 'fanout-ws']) {
    const program = await keep(startOurs(name, { side: 'subject' }));
    const drain = await keep(startOurs('drain', { side: 'load' }));
    await drain.ask({ url: program.url, sockets: SOCKETS });
    programs.push(program);
  }
  const [holdover, bare] = programs as [Program, Program];
  const rows: Row[] = [];
  for (const [name, kind] of Object.entries(KINDS)) {
    const contestants = { holdover: () => sent(holdover, kind), bare: () => sent(bare, kind) };
    await interleave(1, contestants);
    const samples = await interleave(rounds, contestants);
    rows.push(
      ratioRow({
        bench: 'fanout',
        figure: `${name} to ${SOCKETS} sockets`,
        unit: 'frames/s',
        samples: samples.holdover,
        against: { name: 'bare ws loop, one buffer', samples: samples.bare },
        target: { kind: 'at least', ratio: 0.9 },
        cpuUnit: 'µs/frame',
      }),
    );
  }
  return rows;
}

async function sent(program: Program, kind: Kind): Promise<Sample> {
  const cpuBefore = program.cpuNs();
  const { frames, ms } = await program.ask<Sent>({ kind, forMs: 1500 });
  return { value: frames / (ms / 1000), cpuUs: (program.cpuNs() - cpuBefore) / 1000 / frames };
}

const STALLED = 10;
const SHOW: Show = { count: 1000, everyMs: 10, previewBytes: 20_000 };

type Counted = { readonly previews: readonly number[]; readonly steps: readonly number[] };

/** Resolves once all is sent and nothing has come for a while. */
async function untilQuiet(watchers: Program): Promise<Counted> {
  await delay(SHOW.count * SHOW.everyMs);
  let before = '';
  for (let i = 0; i < 30; i++) {
    await delay(1500);
    const counted = await watchers.ask<Counted>({});
    if (JSON.stringify(counted) === before) return counted;
    before = JSON.stringify(counted);
  }
  throw new Error('the sockets do not come to rest');
}

/** The whole server: a job with a hundred pictures a second, ten of its watchers read nothing. */
async function slowConsumers({ workDir, keep }: Context): Promise<Row[]> {
  const service = await keep(startOurs('v2-service', { side: 'load' }));
  await service.ask(SHOW);
  const args = ['--upstream', service.url, '--object-info', 'embedded'];
  const many = ['--limits', '{"socketsPerUser":200}'];
  const holdover = await keep(startHoldover({ workDir, args: [...args, ...many] }));
  const watchers = await keep(startOurs('watchers', { side: 'load' }));
  await watchers.ask({ url: holdover.url, fast: SOCKETS - STALLED, stalled: STALLED });
  const baseMb = holdover.rssBytes() / 1e6;
  holdover.resetPeak();
  const answer = await fetch(`${holdover.url}/prompt`, {
    method: 'POST',
    headers: { 'X-API-Key': 'watcher' },
    body: `{"prompt":${smallGraph()}}`,
  });
  if (!answer.ok) throw new Error(`the prompt was answered with ${answer.status}`);
  const { previews, steps } = await untilQuiet(watchers);
  const grownMb = holdover.peakRssBytes() / 1e6 - baseMb;
  // A late preview is replaced by a newer one before it is sent to any socket; messages never are.
  const shown = Math.max(...previews);
  const lost = (counts: readonly number[], most: number) =>
    counts.reduce((sum, count) => sum + Math.max(0, most - count), 0);
  const lostPreviews = lost(previews, shown);
  const lostSteps = lost(steps, SHOW.count);
  const common = { bench: 'fanout', target: '0 lost' } as const;
  return [
    {
      ...common,
      figure: `${STALLED} of ${SOCKETS} stalled: pictures the others lost`,
      unit: 'frames',
      holdover: lostPreviews,
      reached: `${lostPreviews} of ${shown * previews.length}`,
      holds: lostPreviews === 0,
    },
    {
      ...common,
      figure: 'messages the others lost',
      unit: 'frames',
      holdover: lostSteps,
      reached: `${lostSteps} of ${SHOW.count * steps.length}`,
      holds: lostSteps === 0,
    },
    {
      ...common,
      figure: 'pictures replaced by newer ones before anybody was sent them',
      unit: 'frames',
      holdover: SHOW.count - shown,
      reached: `${SHOW.count - shown} of ${SHOW.count}`,
      target: '–',
      holds: undefined,
    },
    {
      ...common,
      figure: 'RSS above its base',
      unit: 'MB',
      holdover: grownMb,
      reached: `${rounded(grownMb)} MB`,
      target: '≤ 64 MB',
      holds: grownMb <= 64,
    },
  ];
}
