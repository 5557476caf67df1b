import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Balancer, hasBalancer, startBalancer } from './balancer.ts';
import { bucketMissing } from './bucket-server.ts';
import { PROJECT, SECRETS, type Service, composeServices, valuesOf } from './compose.ts';
import { freePort } from './free-port.ts';
import { type Holdover, startHoldover } from './holdover.ts';
import { asOneServer, isClusterTested, redisMissing } from './redis.ts';
import { type RedisCluster, startRedisCluster } from './redis-cluster.ts';
import {
  type StackStore,
  bucketProcess,
  redisProcess,
  startStore,
  succeeds,
} from './stack-stores.ts';
import { type WorkerProcess, startWorker } from './worker.ts';

/**
 * The services of deploy/compose.yaml as processes of this machine, with the commands and variables they have there.
 * `npm run test:cluster` puts a Redis Cluster in the place of its Redis.
 */
export type Stack = {
  readonly balancer: Balancer;
  readonly servers: readonly Holdover[];
  readonly workers: readonly WorkerProcess[];
  readonly redis: StackStore;
  /** In the place of Redis, if asked for. */
  readonly cluster: RedisCluster | undefined;
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
  /** A folder for all data, which an earlier stack may have left; without it a temporary one. */
  readonly root?: string;
  /** Replaces variables of the services; `undefined` removes one. */
  readonly env?: NodeJS.ProcessEnv;
  /** In the place of Redis. */
  readonly cluster?: 'three-nodes' | 'with-replicas';
};

const START_TRIES = 5;

/** The reason why the stack cannot be started here; empty when it can. */
export function stackMissing(): string {
  const balancerMissing = hasBalancer() ? '' : ' (NOT RUN: there is no haproxy on this machine)';
  return redisMissing() || bucketMissing() || balancerMissing;
}

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const root = options.root ?? (await mkdtemp(join(tmpdir(), 'holdover-stack-')));
  const { redis, bucket, holdover, worker } = composeServices();
  if (!redis || !bucket || !holdover || !worker) throw new Error('compose lacks a service');
  const ports = { redis: await freePort(), bucket: await freePort() };
  const cluster = await clusterOf(options);
  const stores = await Promise.all([
    cluster
      ? asOneServer(cluster)
      : startStore(redisProcess(redis, ports.redis, join(root, 'redis'))),
    startStore(bucketProcess(bucket, ports.bucket, join(root, 'bucket'))),
  ]);
  const envOf = (service: Service): NodeJS.ProcessEnv => {
    const values = Object.entries(valuesOf(service.environment)).map(([name, value]) => [
      name,
      value
        .replace('@redis:6379', `@127.0.0.1:${ports.redis}`)
        .replace('//bucket:7070', `//127.0.0.1:${ports.bucket}`),
    ]);
    const ledger = cluster && { HOLDOVER_LEDGER: cluster.url };
    return { ...Object.fromEntries(values), ...ledger, ...options.env };
  };
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
  const servers = await Promise.all(
    serverIndexes.map(async (index) => startServer(index, await freePort())),
  );
  const workers = await Promise.all(workerIndexes.map(startOneWorker));
  const balancer = await startBalancer(servers.map(({ port }) => port));
  const formerLogs: string[] = [];
  return {
    balancer,
    servers,
    workers,
    redis: stores[0],
    cluster,
    bucket: stores[1],
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
      await Promise.all(stores.map((store) => store.kill9()));
      await cluster?.dispose();
      if (options.root === undefined) await rm(root, { recursive: true, force: true });
    },
  };
}

async function clusterOf(options: StackOptions): Promise<RedisCluster | undefined> {
  const password = SECRETS['HOLDOVER_REDIS_PASSWORD'] ?? '';
  if (options.cluster === 'with-replicas')
    return startRedisCluster({ password, withReplicas: true });
  const isWanted = options.cluster === 'three-nodes' || isClusterTested();
  return isWanted ? startRedisCluster({ password }) : undefined;
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
