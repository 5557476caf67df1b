import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrashPoint } from '../../src/lib/crash-point.ts';
import { bucketMissing, startBucketServer } from '../support/processes/bucket-server.ts';
import { freePort } from '../support/processes/free-port.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { startWorker } from '../support/processes/worker.ts';

/** The places where the servers that are called run their jobs. */
export const TOPOLOGIES = ['embedded', 'redis', 'bucket', 'remote'] as const;
export type Topology = (typeof TOPOLOGIES)[number];

/** Why a topology cannot be started here; empty when it can. */
export function missingFor(topology: Topology): string {
  if (topology === 'bucket') return redisMissing() || bucketMissing();
  return topology === 'redis' ? redisMissing() : '';
}

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

/** Calls meet a store that is away. */
const STORE_AWAY_MS = 1500;

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

/** Redis, or the server of a bucket: what it answered is on its disk. */
function killableStore(
  name: string,
  store: { kill9(): Promise<void>; restart(): Promise<void> },
): KillableProcess {
  let isDead = false;
  return {
    name,
    points: [],
    async start() {
      if (isDead) await delay(STORE_AWAY_MS);
      isDead = false;
      await store.restart();
    },
    isGone: () => isDead,
    async kill9() {
      isDead = true;
      await store.kill9();
    },
    log: () => '',
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
  const processes = await { embedded, redis, bucket, remote }[topology](root);
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
  readonly env?: NodeJS.ProcessEnv;
}): Promise<{ readonly killableProcess: KillableProcess; readonly url: string }> {
  const { name, points, dataDir, args, env: own = {} } = options;
  const port = await freePort();
  const launch = (env: NodeJS.ProcessEnv) =>
    startHoldover({ upstream: 'embedded', dataDir, port, args, env: { ...own, ...env } });
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

/** Two servers and two workers over Redis, with their files in one folder. */
async function redis(root: string): Promise<TopologyProcesses> {
  const store = await startRedis();
  const dataDir = join(root, 'data');
  const shared = await serversAndWorkers({ ledger: store.url, dataDirOf: () => dataDir });
  return { ...shared, dispose: () => store.dispose() };
}

/** The same with their files in a bucket, and a folder for each; Redis and the server of the bucket die, too. */
async function bucket(root: string): Promise<TopologyProcesses> {
  const [store, files] = await Promise.all([startRedis(), startBucketServer()]);
  const { killables, urls } = await serversAndWorkers({
    ledger: store.url,
    dataDirOf: (process) => join(root, process),
    args: ['--files', 's3://files/crash', '--s3-endpoint', files.endpoint],
    env: files.credentials,
  });
  return {
    killables: [killableStore('redis', store), killableStore('bucket', files), ...killables],
    urls,
    dispose: async () => void (await Promise.all([store.dispose(), files.dispose()])),
  };
}

/** Two servers that only take prompts, and two workers that run them. */
async function serversAndWorkers(options: {
  readonly ledger: string;
  readonly dataDirOf: (process: string) => string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}): Promise<Omit<TopologyProcesses, 'dispose'>> {
  const { ledger, dataDirOf, args: more = [], env: own = {} } = options;
  const entry = [...PROMPT, 'after-job-insert', 'after-queue-entry', ...FILES] as const;
  const run = [...RUN, ...FILES, 'after-claim', 'after-job-end-decided'] as const;
  const args = ['--ledger', ledger, '--concurrency', '0', ...more];
  const start = (name: string) =>
    server({ name: 'server', points: entry, dataDir: dataDirOf(name), args, env: own });
  const servers = [await start('server-1'), await start('server-2')];
  const limits = ['--worker-limits', JSON.stringify({ lockMs: 2000, checkMs: 500 }), ...more];
  const worker = (name: string) =>
    killableProcess('worker', run, (env) =>
      startWorker({ ledger, dataDir: dataDirOf(name), args: limits, env: { ...own, ...env } }),
    );
  return {
    killables: [
      ...servers.map(({ killableProcess: one }) => one),
      worker('worker-1'),
      worker('worker-2'),
    ],
    urls: servers.map(({ url }) => url),
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
