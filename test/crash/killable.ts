import { setTimeout as delay } from 'node:timers/promises';

type Running = { readonly pid: number; kill9(): Promise<void>; log(): string };

/** A process that is killed and started again on what it stored. */
export type KillableProcess = {
  /** The part of the topology; several processes may be one part. */
  readonly part: string;
  /** The named points it can reach. */
  readonly points: readonly string[];
  /** Starts it, to die at this point (`NAME:3`: when it is there for the third time). */
  start(crashAt: string | undefined): Promise<void>;
  /** True when it is dead. */
  isGone(): boolean;
  kill9(): Promise<void>;
  /** Of all its lives. */
  readonly log: () => string;
};

/** Calls meet a store that is away. */
const STORE_AWAY_MS = 1500;

/** A port is taken for some time by a process that has just died. */
const START_TRIES = 5;

export function killableProcess(
  part: string,
  points: readonly string[],
  launch: (env: NodeJS.ProcessEnv) => Promise<Running>,
): KillableProcess {
  let running: Running | undefined;
  const logs: string[] = [];
  return {
    part,
    points,
    async start(crashAt) {
      const env = { ...(crashAt !== undefined && { HOLDOVER_CRASH_AT: crashAt }) };
      if (running) logs.push(running.log());
      running = undefined;
      // The process may reach the point where it dies while it starts.
      if (crashAt !== undefined) running = await launch(env).catch(() => undefined);
      else running = await untilStarted(() => launch(env));
    },
    isGone: () => running === undefined || !isAlive(running.pid),
    kill9: async () => running?.kill9(),
    log: () => [...logs, running?.log() ?? ''].join(''),
  };
}

/** Redis, the server of a bucket, or a balancer: what it answered is on its disk. */
export function killableStore(
  part: string,
  store: { kill9(): Promise<void>; restart(): Promise<void> },
): KillableProcess {
  let isDead = false;
  return {
    part,
    points: [],
    async start() {
      if (isDead) await delay(STORE_AWAY_MS);
      await untilStarted(() => store.restart());
      isDead = false;
    },
    isGone: () => isDead,
    async kill9() {
      isDead = true;
      await store.kill9();
    },
    log: () => '',
  };
}

async function untilStarted<T>(start: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start();
    } catch (error) {
      if (tries === START_TRIES) throw error;
      await delay(200);
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
