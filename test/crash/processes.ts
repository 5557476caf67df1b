import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBalancer } from '../support/processes/balancer.ts';
import { startBucketServer } from '../support/processes/bucket-server.ts';
import { freePort } from '../support/processes/free-port.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { startRedis } from '../support/processes/redis.ts';
import { startWorker } from '../support/processes/worker.ts';
import { type KillableProcess, killableProcess, killableStore } from './killable.ts';

/** The places where the servers that are called run their jobs. */
export const TOPOLOGIES = ['embedded', 'redis', 'bucket', 'remote'] as const;
export type Topology = (typeof TOPOLOGIES)[number];

export type TopologyProcesses = {
  readonly killables: readonly KillableProcess[];
  /** Addresses that clients call. */
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
] as const;
const FILES = ['after-bytes-stored', 'after-asset-recorded'] as const;
const RUN = ['after-run-begin', 'after-job-end'] as const;

export async function startTopology(topology: Topology): Promise<TopologyProcesses> {
  const root = await mkdtemp(join(tmpdir(), `holdover-crash-${topology}-`));
  const processes = await { embedded, redis, bucket, remote }[topology](root);
  return {
    ...processes,
    async dispose() {
      await Promise.all(processes.killables.map((each) => each.kill9()));
      await processes.dispose();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function startAll(killables: readonly KillableProcess[]): Promise<void> {
  for (const each of killables) await each.start(undefined);
}

async function server(options: {
  readonly name: string;
  readonly points: readonly string[];
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
  await startAll([one]);
  return { killables: [one], urls: [url], dispose: async () => {} };
}

/** Two servers and two workers over Redis, with their files in one folder. */
async function redis(root: string): Promise<TopologyProcesses> {
  const store = await startRedis();
  const dataDir = join(root, 'data');
  const { killables, urls } = await serversAndWorkers({
    ledger: store.url,
    dataDirOf: () => dataDir,
  });
  await startAll(killables);
  return { killables, urls, dispose: () => store.dispose() };
}

/** As in the image: the checks of the balancer come under another name than the address. */
const OPEN = { HOLDOVER_LISTEN: '0.0.0.0', HOLDOVER_ALLOW_INSECURE_BIND: '1' } as const;

/**
 * The parts of deploy/compose.yaml, each of which is killed: servers and workers with their files in a bucket, and a
 * folder for each process.
 */
async function bucket(root: string): Promise<TopologyProcesses> {
  const store = await startRedis();
  const files = await startBucketServer();
  const { killables, urls } = await serversAndWorkers({
    ledger: store.url,
    dataDirOf: (process) => join(root, process),
    args: ['--files', 's3://files/crash', '--s3-endpoint', files.endpoint],
    env: { ...files.credentials, ...OPEN },
  });
  await startAll(killables);
  const balancer = await startBalancer(urls.map((url) => Number(new URL(url).port)));
  const stores = [
    killableStore('redis', store),
    killableStore('bucket', files),
    killableStore('balancer', balancer),
  ];
  return {
    killables: [...stores, ...killables],
    urls: [balancer.url],
    dispose: async () =>
      void (await Promise.all([store.dispose(), files.dispose(), balancer.close()])),
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
  const limits = ['--limits', '{"workers":{"lockMs":2000,"checkMs":500}}', ...more];
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
  await startAll([upstream.killableProcess, front.killableProcess]);
  return {
    killables: [upstream.killableProcess, front.killableProcess],
    urls: [front.url],
    dispose: async () => {},
  };
}
