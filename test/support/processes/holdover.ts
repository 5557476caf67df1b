import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kill9 } from './kill9.ts';
import {
  type TestedUpstream,
  argsOfPair,
  argsOfStack,
  testedUpstream,
} from '../upstreams/tested-upstream.ts';

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
/** For processes with threads that run jobs, unless a test sets `NODE_OPTIONS` itself. */
export const REST_BETWEEN_STEPS = `--require=${fileURLToPath(new URL('rest-between-steps.cjs', import.meta.url))}`;

/** A real Holdover process on a free port. */
export type Holdover = {
  readonly url: string;
  readonly wsUrl: string;
  readonly port: number;
  readonly dataDir: string;
  readonly pid: number;
  /** Everything it logged so far. */
  log(): string;
  /** Resolves when it has ended, or one server of a stack. */
  readonly ended: Promise<void>;
  /** SIGKILL; resolves when the process is gone. The data directory stays. */
  kill9(): Promise<void>;
  /** SIGTERM; resolves with the exit code. The data directory stays. */
  terminate(): Promise<number | null>;
  /** Stops it and removes what it stored. */
  dispose(): Promise<void>;
};

export type StartOptions = {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly dataDir?: string;
  readonly port?: number;
  /** The upstream that runs its jobs. */
  readonly upstream?: TestedUpstream;
};

/**
 * Starts the built server as a user would; `dataDir` given: on what an earlier one stored. Where
 * nothing is said about the upstream the test project says it.
 */
export async function startHoldover(options: StartOptions = {}): Promise<Holdover> {
  const { upstream = testedUpstream() } = options;
  if (upstream === 'stack') return startBehindBalancer(options);
  return upstream === 'remote' ? startPair(options) : startOne(options);
}

/** Redis, a bucket, two servers and a balancer; one worker, since clients are told of one job at a time. */
async function startBehindBalancer(options: StartOptions): Promise<Holdover> {
  const { args = [], env = {}, dataDir } = options;
  const { startStack } = await import('./stack.ts');
  const { freeStores, killStores, takeStores } = await import('./shared-stores.ts');
  const { server, worker } = argsOfStack(args);
  const stores = await takeStores(dataDir);
  const stack = await startStack({
    stores,
    serverArgs: server,
    workerArgs: worker,
    // A service in front of which the servers stand runs the jobs itself.
    workers: args.includes('--upstream') ? 0 : 1,
    env: { HOLDOVER_LOCAL_TOKEN: undefined, HOLDOVER_ALLOW_INSECURE_BIND: '1', ...env },
    ...(dataDir !== undefined && { root: join(dataDir, 'stack') }),
  });
  const { balancer, servers } = stack;
  let killed: Promise<unknown> | undefined;
  async function kill9(): Promise<void> {
    killed ??= Promise.all([stack.dispose(), killStores(stores, dataDir)]);
    await killed;
  }
  return {
    url: balancer.url,
    wsUrl: balancer.wsUrl,
    port: Number(new URL(balancer.url).port),
    dataDir: servers[0]?.dataDir ?? '',
    pid: servers[0]?.pid ?? 0,
    log: () => stack.log(),
    ended: Promise.race(servers.map(({ ended }) => ended)),
    kill9,
    async terminate() {
      const codes = await Promise.all(servers.map((one) => one.terminate()));
      await kill9();
      return codes.find((code) => code !== 0) ?? 0;
    },
    async dispose() {
      if (killed === undefined) {
        await stack.dispose();
        await freeStores(stores);
      }
      if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function startPair(options: StartOptions): Promise<Holdover> {
  const { front, behind } = argsOfPair(options.args ?? []);
  const engine = await startOne({ args: behind });
  try {
    const holdover = await startOne({ ...options, args: ['--upstream', engine.url, ...front] });
    return {
      ...holdover,
      log: () => holdover.log() + engine.log(),
      async dispose() {
        await holdover.dispose();
        await engine.dispose();
      },
    };
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

async function startOne(options: StartOptions): Promise<Holdover> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'holdover-test-')));
  const args = [
    '--port',
    String(options.port ?? 0),
    '--data-dir',
    dataDir,
    ...(options.args ?? []),
  ];
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: {
      ...process.env,
      HOLDOVER_LOG_LEVEL: 'info',
      NODE_OPTIONS: REST_BETWEEN_STEPS,
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => log.push(chunk.toString()));
  const url = await listening(child, log);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  return {
    url,
    wsUrl: url.replace(/^http/, 'ws'),
    port: Number(new URL(url).port),
    dataDir,
    pid: child.pid ?? 0,
    log() {
      // Joined once: some tests read a long log after each of hundreds of calls.
      log.splice(0, log.length, log.join(''));
      return log[0] ?? '';
    },
    ended: exited.then(() => {}),
    kill9: () => kill9(child),
    async terminate() {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
    async dispose() {
      await kill9(child);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Runs the command line to its end, for flags that make it exit. */
export async function runHoldover(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

function listening(child: ChildProcess, log: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const url = /^To see the GUI go to: (\S+)$/m.exec(text)?.[1];
      if (url) resolve(url);
    });
    child.once('exit', (code) => reject(new Error(`exited with ${code}: ${text}${log.join('')}`)));
  });
}
