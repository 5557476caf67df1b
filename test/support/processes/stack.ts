import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Balancer, hasBalancer, startBalancer } from './balancer.ts';
import { bucketMissing } from './bucket-server.ts';
import { PROJECT, SECRETS, type Service, composeServices } from './compose.ts';
import { freePort } from './free-port.ts';
import { type Holdover, startHoldover } from './holdover.ts';
import { redisMissing } from './redis.ts';
import { type StackStore, type StackStores, startStores, succeeds } from './stack-stores.ts';
import { type WorkerProcess, startWorker } from './worker.ts';

/** The services of deploy/compose.yaml as processes of this machine, with the commands and variables they have there. */
export type Stack = {
  readonly balancer: Balancer;
  readonly servers: readonly Holdover[];
  readonly workers: readonly WorkerProcess[];
  readonly redis: StackStore;
  readonly bucket: StackStore;
  /** Callers present it. */
  readonly token: string;
  readonly dirs: readonly string[];
  /** Starts again what was stopped or killed, at its port and with its folder. */
  restartServer(index: number): Promise<void>;
  restartWorker(index: number): Promise<void>;
  log(): string;
  dispose(): Promise<void>;
};

export type StackOptions = {
  /** Beside the flags that the services have in compose. */
  readonly serverArgs?: readonly string[];
  readonly workerArgs?: readonly string[];
  /** As many as in compose. */
  readonly workers?: number;
  /** A folder for those of the servers and workers, which an earlier stack may have left; without it a temporary one. */
  readonly root?: string;
  /** Replaces variables of the services; `undefined` removes one. */
  readonly env?: NodeJS.ProcessEnv;
  /** Of the caller, who ends them; without them the stack has its own. */
  readonly stores?: StackStores;
};

const START_TRIES = 5;

/** The reason why the stack cannot be started here; empty when it can. */
export function stackMissing(): string {
  const balancerMissing = hasBalancer() ? '' : ' (NOT RUN: there is no haproxy on this machine)';
  return redisMissing() || bucketMissing() || balancerMissing;
}

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const root = options.root ?? (await mkdtemp(join(tmpdir(), 'holdover-stack-')));
  const { holdover, worker } = composeServices();
  if (!holdover || !worker) throw new Error('compose lacks a service');
  const stores = options.stores ?? (await startStores());
  const envOf = (service: Service): NodeJS.ProcessEnv => ({
    ...stores.variablesOf(service),
    ...options.env,
  });
  const startServer = (index: number, port: number) =>
    startHoldover({
      upstream: 'embedded',
      dataDir: join(root, `server-${index}`),
      port,
      args: [...holdover.command, ...(options.serverArgs ?? [])],
      // As in the image.
      env: { HOLDOVER_LISTEN: '0.0.0.0', ...envOf(holdover) },
    });
  const startOneWorker = (index: number) => {
    const env = envOf(worker);
    const args = [...worker.command.slice(1), ...(options.workerArgs ?? [])];
    const ledger = env['HOLDOVER_LEDGER'] ?? '';
    return startWorker({ ledger, dataDir: join(root, `worker-${index}`), args, env });
  };
  const indexesTo = (count: number) => Array.from({ length: count }, (_, i) => i);
  const serverIndexes = indexesTo(holdover.deploy.replicas);
  const workerIndexes = indexesTo(options.workers ?? worker.deploy.replicas);
  const [servers, workers] = await Promise.all([
    Promise.all(serverIndexes.map(async (index) => startServer(index, await freePort()))),
    Promise.all(workerIndexes.map(startOneWorker)),
  ]);
  const balancer = await startBalancer(servers.map(({ port }) => port));
  const formerLogs: string[] = [];
  return {
    balancer,
    servers,
    workers,
    redis: stores.redis,
    bucket: stores.bucket,
    token: SECRETS['HOLDOVER_LOCAL_TOKEN'] ?? '',
    dirs: [
      ...serverIndexes.map((i) => `server-${i}`),
      ...workerIndexes.map((i) => `worker-${i}`),
    ].map((name) => join(root, name)),
    async restartServer(index) {
      const former = servers[index];
      if (!former) throw new Error(`there is no server ${index}`);
      formerLogs.push(former.log());
      servers[index] = await untilStarted(() => startServer(index, former.port));
    },
    async restartWorker(index) {
      formerLogs.push(workers[index]?.log() ?? '');
      workers[index] = await untilStarted(() => startOneWorker(index));
    },
    log: () => [...formerLogs, ...[...servers, ...workers].map((one) => one.log())].join(''),
    async dispose() {
      await balancer.close();
      await Promise.all([...servers, ...workers].map((one) => one.dispose()));
      if (options.stores === undefined) await stores.dispose();
      if (options.root === undefined) await rm(root, { recursive: true, force: true });
    },
  };
}

/** As `restart: unless-stopped`: a store may be away. */
async function untilStarted<T>(start: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start();
    } catch (error) {
      if (tries === START_TRIES) throw error;
      await delay(1000);
    }
  }
}

/** The health check of a service of the image, asked of the process at this port. */
export function isHealthy(args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const check = fileURLToPath(new URL('deploy/health.mjs', PROJECT));
  return succeeds(process.execPath, [check, ...args], { ...process.env, ...env });
}
