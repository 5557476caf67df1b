import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { seeded } from '../support/graphs/seeded.ts';
import type { Acknowledged } from './client-actions.ts';
import type { KillableProcess } from './killable.ts';
import { type Load, startLoad } from './load.ts';
import { type Account, addedUp, newAccount, settle } from './outcomes.ts';
import { type Topology, type TopologyProcesses, startTopology } from './processes.ts';

export type CrashOptions = {
  readonly topology: Topology;
  /** Of parts that take turns in a random order. */
  readonly kills: number;
  /** Before these: of each part, or of those that are named, while the others live. */
  readonly killsOfEach?: number;
  readonly parts?: readonly string[] | undefined;
  readonly seed: number;
  /** A folder for the logs of all processes, written at the end. */
  readonly logs?: string;
  /** Told after each round of kills how things stand. */
  readonly onRound?: (report: CrashReport) => void;
};

export type CrashReport = {
  readonly topology: Topology;
  /** By named point; `random` at any moment; stores and the balancer by their names. */
  readonly kills: Tally;
  /** The same kills by the part that died. */
  readonly killsOfParts: Tally;
  readonly rounds: readonly Round[];
  readonly account: Account;
};

/** Some kills under load, and what became of all that was accepted meanwhile. */
export type Round = { readonly part: string; readonly kills: number; readonly account: Account };

type Tally = Record<string, number>;

/** The round in which any part may die, and the one that kills nothing and looks at everything again. */
export const ANY_PART = 'any of them';
const ALL_AGAIN = 'all again at the end';

/** After so many kills all that was accepted is looked at. */
const ROUND_KILLS = 30;
/** A named point that is not reached by then gets a kill at this moment instead. */
const ARRIVE_WITHIN_MS = 4000;
const LIVES_MS = { least: 100, most: 1500 } as const;
/** A point is passed up to so often before the process dies there. */
const ARRIVALS = 3;
const LOOK_MS = 20;
/** The share of kills at any moment that come only after a prompt was accepted. */
const LOADED = 0.7;
const FIRST_WITHIN_MS = 60_000;
const NEXT_WITHIN_MS = 15_000;

type CrashRun = {
  readonly processes: TopologyProcesses;
  readonly random: () => number;
  readonly points: Tally;
  readonly parts: Tally;
  /** How often a process was started to die at each named point. */
  readonly tried: Tally;
  /** Processes that ended without being killed. */
  readonly ended: string[];
  /** Results that were found to be there twice. */
  readonly doubled: Set<string>;
};

/** Kills processes under a mixed load, most servers and workers at named points, and says what became of it. */
export async function crash(options: CrashOptions): Promise<CrashReport> {
  const { topology, seed } = options;
  const { random } = seeded(seed);
  let made = 0;
  const context = { random, next: () => ++made };
  const processes = await startTopology(topology);
  const tallies = { points: {}, parts: {}, tried: {} };
  const run: CrashRun = { processes, random, ...tallies, ended: [], doubled: new Set() };
  const rounds: Round[] = [];
  const accepted: Acknowledged[] = [];
  const report = (): CrashReport => ({
    topology,
    kills: run.points,
    killsOfParts: run.parts,
    rounds,
    account: {
      ...addedUp(rounds.filter(({ part }) => part !== ALL_AGAIN).map(({ account }) => account)),
      troubles: [...new Set(rounds.flatMap(({ account }) => account.troubles))],
    },
  });
  try {
    for (const { part, kills } of roundsOf(options, processes)) {
      const load = startLoad(processes.urls, context);
      if (!(await isAccepted(load, FIRST_WITHIN_MS)))
        throw new Error('no prompt was accepted before the first kill');
      const armed = await killSome(run, load, { part, kills });
      await load.stop();
      await disarm(processes, armed);
      rounds.push({ part, kills, account: await settleAll(run, load) });
      accepted.push(...load.acknowledged);
      options.onRound?.(report());
    }
    // After a single round nothing has happened since.
    if (rounds.length > 1)
      rounds.push({ part: ALL_AGAIN, kills: 0, account: await settleAgain(run, accepted) });
  } finally {
    if (options.logs !== undefined) writeLogs(processes, options.logs);
    await processes.dispose();
  }
  return report();
}

function writeLogs({ killables }: TopologyProcesses, folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [i, { part, log }] of killables.entries())
    writeFileSync(join(folder, `${part} ${i}.log`), log());
}

function roundsOf(
  { kills, killsOfEach = 0, parts: named }: CrashOptions,
  { killables }: TopologyProcesses,
): readonly Omit<Round, 'account'>[] {
  const all = [...new Set(killables.map(({ part }) => part))];
  const parts = named ?? all;
  if (parts.some((part) => !all.includes(part))) throw new Error(`the parts are ${all.join(', ')}`);
  return [
    ...parts.flatMap((part) => roundsOfPart(part, killsOfEach)),
    ...roundsOfPart(ANY_PART, kills),
  ];
}

function roundsOfPart(part: string, kills: number): readonly Omit<Round, 'account'>[] {
  const count = Math.ceil(kills / ROUND_KILLS);
  return Array.from({ length: count }, (_, i) => ({
    part,
    kills: Math.min(ROUND_KILLS, kills - i * ROUND_KILLS),
  }));
}

/** True as soon as one more prompt is accepted: a kill after it meets a load. */
async function isAccepted({ acknowledged }: Load, withinMs: number): Promise<boolean> {
  const count = (): number => acknowledged.reduce((sum, { prompts }) => sum + prompts.length, 0);
  const before = count();
  for (const deadlineMs = performance.now() + withinMs; performance.now() < deadlineMs;) {
    if (count() > before) return true;
    await delay(LOOK_MS);
  }
  return false;
}

async function killSome(
  run: CrashRun,
  load: Load,
  round: Omit<Round, 'account'>,
): Promise<ReadonlyMap<KillableProcess, string>> {
  const { random, points, parts } = run;
  const armed = new Map<KillableProcess, string>();
  for (let kill = 0; kill < round.kills; kill++) {
    const victim = chosen(run, round.part);
    // The others meet processes that have not recovered from the kill before.
    if (!armed.has(victim) && random() < LOADED) await isAccepted(load, NEXT_WITHIN_MS);
    const died = await dieAt(run, victim, armed.get(victim));
    points[died] = (points[died] ?? 0) + 1;
    parts[victim.part] = (parts[victim.part] ?? 0) + 1;
    const next = random() < 0.25 ? undefined : pointOf(victim, run);
    if (next === undefined) armed.delete(victim);
    else armed.set(victim, next);
    await victim.start(next);
  }
  return armed;
}

/** Each part has its turn, and then one of its processes. */
function chosen(
  { processes: { killables }, parts, random }: CrashRun,
  part: string,
): KillableProcess {
  const killsOf = (one: KillableProcess): number => parts[one.part] ?? 0;
  const fewest = Math.min(...killables.map(killsOf));
  const next = killables.filter((one) =>
    part === ANY_PART ? killsOf(one) === fewest : one.part === part,
  );
  const victim = next[Math.floor(random() * next.length)];
  if (!victim) throw new Error('there is nothing to kill');
  return victim;
}

/** Each point has its turn. */
function pointOf({ points }: KillableProcess, { tried, random }: CrashRun): string | undefined {
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
  { random, ended }: CrashRun,
  victim: KillableProcess,
  point: string | undefined,
): Promise<string> {
  const most = LIVES_MS.least + random() * (LIVES_MS.most - LIVES_MS.least);
  const deadlineMs = performance.now() + (point === undefined ? most : ARRIVE_WITHIN_MS);
  while (performance.now() < deadlineMs) {
    if (point !== undefined && victim.isGone()) return point.split(':')[0] ?? point;
    await delay(LOOK_MS);
  }
  if (point === undefined && victim.isGone()) ended.push(`ended by itself: ${victim.part}`);
  await victim.kill9();
  return victim.points.length === 0 ? victim.part : 'random';
}

/** Nothing dies any more: what was accepted is to end now. */
async function disarm(
  { killables }: TopologyProcesses,
  armed: ReadonlyMap<KillableProcess, string>,
): Promise<void> {
  for (const victim of killables) {
    if (!armed.has(victim)) continue;
    await victim.kill9();
    await victim.start(undefined);
  }
}

async function settleAll({ processes, ended, doubled }: CrashRun, load: Load): Promise<Account> {
  const account = newAccount();
  for (const acknowledged of load.acknowledged) await settle(account, acknowledged, doubled);
  account.troubles.push(...load.problems, ...ended.splice(0));
  for (const victim of processes.killables) {
    const fatal = /^.*"level":60.*$/m.exec(victim.log());
    if (fatal) account.troubles.push(`${victim.part}: ${fatal[0]}`);
  }
  return account;
}

/** Looks at all work again after later kills; only files of users are written over. */
async function settleAgain(
  { doubled }: CrashRun,
  accepted: readonly Acknowledged[],
): Promise<Account> {
  const account = newAccount();
  for (const one of accepted) await settle(account, { ...one, userdata: new Map() }, doubled);
  return account;
}
