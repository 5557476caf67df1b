import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { type Balancer, hasBalancer, startBalancer } from './balancer.ts';
import { bucketMissing, bucketProgram } from './bucket-server.ts';
import { freePort } from './free-port.ts';
import { type Holdover, startHoldover } from './holdover.ts';
import { asOneServer, isClusterTested, redisMissing } from './redis.ts';
import { type RedisCluster, startRedisCluster } from './redis-cluster.ts';
import { type WorkerProcess, startWorker } from './worker.ts';

/** A service of compose that is a program of another make. */
export type StackStore = {
  kill9(): Promise<void>;
  /** The same data on the same port. */
  restart(): Promise<void>;
};

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

type Service = {
  readonly command: readonly string[];
  readonly entrypoint: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck: { readonly test: readonly [string, ...string[]] };
  readonly deploy: { readonly replicas: number };
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

const PROJECT = new URL('../../../', import.meta.url);
const SECRETS: Readonly<Record<string, string>> = {
  HOLDOVER_LOCAL_TOKEN: 'token-of-the-stack',
  HOLDOVER_REDIS_PASSWORD: 'password-of-redis',
  HOLDOVER_S3_SECRET: 'secret-of-the-bucket',
};
const READY_WITHIN_MS = 30_000;
const START_TRIES = 5;

/** The reason why the stack cannot be started here; empty when it can. */
export function stackMissing(): string {
  const balancerMissing = hasBalancer() ? '' : ' (NOT RUN: there is no haproxy on this machine)';
  return redisMissing() || bucketMissing() || balancerMissing;
}

function composeServices(): Readonly<Record<string, Service>> {
  const text = readFileSync(new URL('deploy/compose.yaml', PROJECT), 'utf8');
  return (parse(text, { merge: true }) as { services: Record<string, Service> }).services;
}

/** As compose reads a value: with the variables of its caller, and `$$` for a dollar sign. */
function valueOf(text: string): string {
  const known = text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_whole, name: string) => {
    const secret = SECRETS[name];
    if (secret === undefined) throw new Error(`compose wants ${name}`);
    return secret;
  });
  return known.replaceAll('$$', '$');
}

const valuesOf = (environment: Service['environment']): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, text]) => [name, valueOf(text)]));

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

/** The command that starts a store, and its health check. */
type StoreProcess = {
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  /** A shell command. */
  readonly health: string;
};

/** Its file of settings is in `/tmp` there, and its data in `/data`. */
function redisProcess(service: Service, port: number, folder: string): StoreProcess {
  const [shell = 'sh', flag = '-c', script = ''] = service.command.map(valueOf);
  const place = `--port ${port} --bind 127.0.0.1 --dir ${folder}`;
  return {
    command: [shell, flag, `${script.replaceAll('/tmp/', `${folder}/`)} ${place}`],
    env: valuesOf(service.environment),
    folder,
    health: shellCheckOf(service).replaceAll('redis-cli', `redis-cli -p ${port}`),
  };
}

function bucketProcess(service: Service, port: number, folder: string): StoreProcess {
  const [shell = 'sh', flag = '-c', script = ''] = service.entrypoint.map(valueOf);
  const here = script.replaceAll('/data', `${folder}/data`).replace(' :7070', ` 127.0.0.1:${port}`);
  const path = `${dirname(bucketProgram() ?? '')}${delimiter}${process.env['PATH']}`;
  return {
    command: [shell, flag, here],
    env: { ...valuesOf(service.environment), PATH: path },
    folder,
    health: shellCheckOf(service).replaceAll(':7070', `:${port}`),
  };
}

function shellCheckOf({ healthcheck }: Service): string {
  const [kind, command = ''] = healthcheck.test;
  if (kind !== 'CMD-SHELL') throw new Error(`the health check is ${kind}`);
  return valueOf(command);
}

async function startStore(store: StoreProcess): Promise<StackStore> {
  await mkdir(store.folder, { recursive: true });
  let child = await startHealthy(store);
  async function kill9(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }
  return {
    kill9,
    async restart() {
      await kill9();
      child = await startHealthy(store);
    },
  };
}

async function startHealthy(store: StoreProcess): Promise<ChildProcess> {
  const [program, ...args] = store.command;
  const env = { ...process.env, ...store.env };
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  const errors: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
  for (const deadline = Date.now() + READY_WITHIN_MS; Date.now() < deadline; await delay(50)) {
    if (child.exitCode !== null) break;
    if (await succeeds('sh', ['-c', store.health], env)) return child;
  }
  child.kill('SIGKILL');
  throw new Error(`${store.command.join(' ')} is not healthy: ${errors.join('')}`);
}

/** True when a program ends with 0. */
export function succeeds(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(program, args, { env }, (error) => resolve(error === null));
  });
}

/** The health check of a service of the image, asked of the process at this port. */
export function isHealthy(args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const check = fileURLToPath(new URL('deploy/health.mjs', PROJECT));
  return succeeds(process.execPath, [check, ...args], { ...process.env, ...env });
}
