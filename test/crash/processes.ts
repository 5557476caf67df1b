import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrashPoint } from '../../src/lib/crash-point.ts';
import { freePort } from '../support/processes/free-port.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { startRedis } from '../support/processes/redis.ts';
import { startWorker } from '../support/processes/worker.ts';

/** The places where the servers that are called run their jobs. */
export const TOPOLOGIES = ['embedded', 'redis', 'remote'] as const;
export type Topology = (typeof TOPOLOGIES)[number];

type Running = { readonly pid: number; kill9(): Promise<void>; log(): string };

/** A process that is killed and started again on what it stored. */
export type KillableProcess = {
  readonly name: string;
  /** The named points it can reach. */
  readonly points: readonly CrashPoint[];
  /** Starts it, to die at this point (`NAME:3`: when it is there for the third time). */
  start(crashAt: string | undefined): Promise<void>;
  /** True when it is dead. */
  isGone(): boolean;
  kill9(): Promise<void>;
  /** Of all its lives. */
  log(): string;
};

export type TopologyProcesses = {
  readonly killables: readonly KillableProcess[];
  /** Addresses of the servers that clients call. */
  readonly urls: readonly string[];
  dispose(): Promise<void>;
};

const PROMPT = [
  'after-intent',
  'after-submit',
  'after-attach',
  'after-output-named',
  'after-cancel-asked',
  'after-history',
] as const satisfies readonly CrashPoint[];
const FILES = ['after-bytes-stored', 'after-asset-recorded'] as const;
const RUN = ['after-run-begin', 'after-job-end'] as const;

/** A port is taken for some time by a process that has just died. */
const START_TRIES = 5;

function killableProcess(
  name: string,
  points: readonly CrashPoint[],
  launch: (env: NodeJS.ProcessEnv) => Promise<Running>,
): KillableProcess {
  let running: Running | undefined;
  const logs: string[] = [];
  return {
    name,
    points,
    async start(crashAt) {
      const env = { ...(crashAt !== undefined && { HOLDOVER_CRASH_AT: crashAt }) };
      if (running) logs.push(running.log());
      running = undefined;
      for (let tries = 1; running === undefined; tries++) {
        try {
          running = await launch(env);
        } catch (error) {
          // The process may reach the point where it dies while it starts.
          if (crashAt !== undefined) return;
          if (tries === START_TRIES) throw error;
          await delay(200);
        }
      }
    },
    isGone: () => running === undefined || !isAlive(running.pid),
    kill9: async () => running?.kill9(),
    log: () => [...logs, running?.log() ?? ''].join(''),
  };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export async function startTopology(topology: Topology): Promise<TopologyProcesses> {
  const root = await mkdtemp(join(tmpdir(), `holdover-crash-${topology}-`));
  const processes = await { embedded, redis, remote }[topology](root);
  for (const each of processes.killables) await each.start(undefined);
  return {
    ...processes,
    async dispose() {
      await Promise.all(processes.killables.map((each) => each.kill9()));
      await processes.dispose();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function server(options: {
  readonly name: string;
  readonly points: readonly CrashPoint[];
  readonly dataDir: string;
  readonly args: readonly string[];
}): Promise<{ readonly killableProcess: KillableProcess; readonly url: string }> {
  const { name, points, dataDir, args } = options;
  const port = await freePort();
  const launch = (env: NodeJS.ProcessEnv) =>
    startHoldover({ upstream: 'embedded', dataDir, port, args, env });
  return {
    killableProcess: killableProcess(name, points, launch),
    url: `http://127.0.0.1:${port}`,
  };
}

async function embedded(root: string): Promise<TopologyProcesses> {
  const points = [...PROMPT, ...FILES, ...RUN, 'after-job-insert', 'folder-owed'] as const;
  const args = ['--output-directory', await mkdtemp(join(root, 'outputs-'))];
  const dataDir = join(root, 'data');
  const { killableProcess: one, url } = await server({ name: 'server', points, dataDir, args });
  return { killables: [one], urls: [url], dispose: async () => {} };
}

/** Two servers that only take prompts, and two workers that run them. */
async function redis(root: string): Promise<TopologyProcesses> {
  const store = await startRedis();
  const dataDir = join(root, 'data');
  const entry = [...PROMPT, 'after-job-insert', 'after-queue-entry', ...FILES] as const;
  const run = [...RUN, ...FILES, 'after-claim', 'after-job-end-decided'] as const;
  const args = ['--ledger', store.url, '--concurrency', '0'];
  const first = await server({ name: 'server', points: entry, dataDir, args });
  const second = await server({ name: 'server', points: entry, dataDir, args });
  const limits = ['--worker-limits', JSON.stringify({ lockMs: 2000, checkMs: 500 })];
  const worker = () =>
    killableProcess('worker', run, (env) =>
      startWorker({ ledger: store.url, dataDir, args: limits, env: { ...env } }),
    );
  return {
    killables: [first.killableProcess, second.killableProcess, worker(), worker()],
    urls: [first.url, second.url],
    dispose: () => store.dispose(),
  };
}

/** A server in front of another one that has little room, so that prompts wait in the first. */
async function remote(root: string): Promise<TopologyProcesses> {
  const upstream = await server({
    name: 'upstream',
    points: ['after-job-insert', ...RUN, ...FILES],
    dataDir: join(root, 'upstream'),
    args: ['--queue-limit', '4'],
  });
  const front = await server({
    name: 'server',
    points: [...PROMPT, 'after-outbox'],
    dataDir: join(root, 'front'),
    args: ['--upstream', upstream.url],
  });
  return {
    killables: [upstream.killableProcess, front.killableProcess],
    urls: [front.url],
    dispose: async () => {},
  };
}
