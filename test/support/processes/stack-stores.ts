import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { bucketProgram } from './bucket-server.ts';
import { SECRETS, type Service, composeServices, valueOf, valuesOf } from './compose.ts';
import { freePort } from './free-port.ts';
import { kill9 } from './kill9.ts';

/** A service of compose that is a program of another make. */
export type StackStore = {
  kill9(): Promise<void>;
  /** The same data on the same port. */
  restart(): Promise<void>;
};

/** Where the records and the files of a stack are. */
export type StackStores = {
  readonly redis: StackStore;
  readonly bucket: StackStore;
  /** The variables that a service has in compose, with the addresses of this machine. */
  variablesOf(service: Service): NodeJS.ProcessEnv;
  /** Removes all data. */
  empty(): Promise<void>;
  dispose(): Promise<void>;
};

const READY_WITHIN_MS = 30_000;

export async function startStores(): Promise<StackStores> {
  const root = await mkdtemp(join(tmpdir(), 'holdover-stores-'));
  const services = composeServices();
  if (!services['redis'] || !services['bucket']) throw new Error('compose lacks a service');
  const ports = { redis: await freePort(), bucket: await freePort() };
  const [redis, bucket] = await Promise.all([
    startStore(redisProcess(services['redis'], ports.redis, join(root, 'redis'))),
    startStore(bucketProcess(services['bucket'], ports.bucket, join(root, 'bucket'))),
  ]);
  const addressed = (text: string): string =>
    text
      .replace('@redis:6379', `@127.0.0.1:${ports.redis}`)
      .replace('//bucket:7070', `//127.0.0.1:${ports.bucket}`);
  const variablesOf = ({ environment }: Service): Record<string, string> => {
    const values = Object.entries(valuesOf(environment));
    return Object.fromEntries(values.map(([name, text]) => [name, addressed(text)]));
  };
  const password = SECRETS['HOLDOVER_REDIS_PASSWORD'] ?? '';
  return {
    redis,
    bucket,
    variablesOf,
    async empty() {
      await flush(`redis://:${password}@127.0.0.1:${ports.redis}`);
      await emptyFolder(join(root, 'bucket', 'data', 'holdover'));
    },
    async dispose() {
      await Promise.all([redis.kill9(), bucket.kill9()]);
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function flush(url: string): Promise<void> {
  const redis = new Redis(url);
  await redis.flushall();
  redis.disconnect();
}

/** A folder is a bucket: it stays. */
async function emptyFolder(folder: string): Promise<void> {
  const names = await readdir(folder);
  await Promise.all(names.map((name) => rm(join(folder, name), { recursive: true, force: true })));
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
  return {
    kill9: () => kill9(child),
    async restart() {
      await kill9(child);
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
