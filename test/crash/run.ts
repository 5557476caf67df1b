import { setTimeout as delay } from 'node:timers/promises';
import { seeded } from '../support/graphs/seeded.ts';
import { type Account, newAccount, settle } from './outcomes.ts';
import { type Load, startLoad } from './load.ts';
import {
  type TopologyProcesses,
  type Topology,
  type KillableProcess,
  startTopology,
} from './processes.ts';

export type CrashOptions = {
  readonly topology: Topology;
  readonly kills: number;
  readonly seed: number;
  /** Told after each batch of kills how things stand. */
  readonly onBatch?: (report: CrashReport) => void;
};

export type CrashReport = {
  readonly topology: Topology;
  /** By named point; `random` at any moment; `redis` and `bucket` for the stores. */
  readonly kills: Readonly<Record<string, number>>;
  readonly account: Account;
};

type Tally = Record<string, number>;

/** After so many kills all that was accepted is looked at. */
const BATCH = 20;
/** A named point that is not reached by then gets a kill at this moment instead. */
const ARRIVE_WITHIN_MS = 4000;
const LIVES_MS = { least: 100, most: 1500 } as const;
/** A point is passed up to so often before the process dies there. */
const ARRIVALS = 3;
const LOOK_MS = 20;

/** Kills processes under a mixed load, half of them at named points, and says what became of it. */
export async function crash(options: CrashOptions): Promise<CrashReport> {
  const { topology, seed } = options;
  const { random } = seeded(seed);
  let made = 0;
  const context = { random, next: () => ++made };
  const processes = await startTopology(topology);
  const account = newAccount();
  const tally: Tally = {};
  const tried: Tally = {};
  try {
    for (let left = options.kills; left > 0; left -= BATCH) {
      const load = startLoad(processes.urls, context);
      await killSome(processes, { random, tally, tried, kills: Math.min(BATCH, left) });
      await load.stop();
      await restAll(processes, tally);
      await settleAll(account, processes, load);
      options.onBatch?.({ topology, kills: tally, account });
    }
  } finally {
    await processes.dispose();
  }
  return { topology, kills: tally, account };
}

type Killing = {
  readonly random: () => number;
  readonly tally: Tally;
  /** How often a process was started to die at each named point. */
  readonly tried: Tally;
  readonly kills: number;
};

async function killSome(
  processes: TopologyProcesses,
  { random, tally, tried, kills }: Killing,
): Promise<void> {
  const armed = new Map<KillableProcess, string>();
  for (let kill = 0; kill < kills; kill++) {
    const victim = processes.killables[Math.floor(random() * processes.killables.length)];
    if (!victim) throw new Error('there is nothing to kill');
    const died = await dieAt(victim, armed.get(victim), random);
    tally[died] = (tally[died] ?? 0) + 1;
    const next = random() < 0.25 ? undefined : pointOf(victim, tried, random);
    if (next === undefined) armed.delete(victim);
    else armed.set(victim, next);
    await victim.start(next);
  }
}

/** Each point has its turn. */
function pointOf(
  { points }: KillableProcess,
  tried: Tally,
  random: () => number,
): string | undefined {
  const triesOf = (point: string): number => tried[point] ?? 0;
  const fewest = Math.min(...points.map(triesOf));
  const next = points.filter((point) => triesOf(point) === fewest);
  const point = next[Math.floor(random() * next.length)];
  if (point === undefined) return undefined;
  tried[point] = fewest + 1;
  return `${point}:${1 + Math.floor(random() * ARRIVALS)}`;
}

/** Where it died: at the point it was started for, or at any moment. Stores are counted by their names. */
async function dieAt(
  victim: KillableProcess,
  point: string | undefined,
  random: () => number,
): Promise<string> {
  const most = LIVES_MS.least + random() * (LIVES_MS.most - LIVES_MS.least);
  const deadlineMs = performance.now() + (point === undefined ? most : ARRIVE_WITHIN_MS);
  while (performance.now() < deadlineMs) {
    if (point !== undefined && victim.isGone()) return point.split(':')[0] ?? point;
    await delay(LOOK_MS);
  }
  await victim.kill9();
  return victim.points.length === 0 ? victim.name : 'random';
}

/** Nothing dies any more: what was accepted is to end now. */
async function restAll({ killables: victims }: TopologyProcesses, tally: Tally): Promise<void> {
  for (const victim of victims) {
    await victim.kill9();
    tally['random'] = (tally['random'] ?? 0) + 1;
    await victim.start(undefined);
  }
}

async function settleAll(
  account: Account,
  processes: TopologyProcesses,
  load: Load,
): Promise<void> {
  for (const acknowledged of load.acknowledged) await settle(account, acknowledged);
  for (const problem of load.problems) account.troubles.push(problem);
  for (const victim of processes.killables) {
    const fatal = /^.*"level":60.*$/m.exec(victim.log());
    if (fatal) account.troubles.push(`${victim.name}: ${fatal[0]}`);
  }
}
