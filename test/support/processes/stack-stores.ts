import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { delimiter, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bucketProgram } from './bucket-server.ts';
import { type Service, valueOf, valuesOf } from './compose.ts';

/** A service of compose that is a program of another make. */
export type StackStore = {
  kill9(): Promise<void>;
  /** The same data on the same port. */
  restart(): Promise<void>;
};

const READY_WITHIN_MS = 30_000;

/** The command that starts a store, and its health check. */
type StoreProcess = {
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  /** A shell command. */
  readonly health: string;
};

/** Its file of settings is in `/tmp` there, and its data in `/data`. */
export function redisProcess(service: Service, port: number, folder: string): StoreProcess {
  const [shell = 'sh', flag = '-c', script = ''] = service.command.map(valueOf);
  const place = `--port ${port} --bind 127.0.0.1 --dir ${folder}`;
  return {
    command: [shell, flag, `${script.replaceAll('/tmp/', `${folder}/`)} ${place}`],
    env: valuesOf(service.environment),
    folder,
    health: shellCheckOf(service).replaceAll('redis-cli', `redis-cli -p ${port}`),
  };
}

export function bucketProcess(service: Service, port: number, folder: string): StoreProcess {
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

export async function startStore(store: StoreProcess): Promise<StackStore> {
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
