import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { REST_BETWEEN_STEPS } from './holdover.ts';
import { kill9 } from './kill9.ts';

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/** A real `holdover worker`. */
export type WorkerProcess = {
  readonly pid: number;
  /** Everything it logged so far. */
  log(): string;
  kill9(): Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  terminate(): Promise<number | null>;
  /** Stopped in the middle of whatever it does, until it is resumed. */
  pause(): void;
  resume(): void;
  dispose(): Promise<void>;
};

/** Starts the built program; resolves once it waits for jobs. */
export async function startWorker(options: {
  readonly ledger: string;
  readonly dataDir: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}): Promise<WorkerProcess> {
  const { ledger, dataDir, args = [], env = {} } = options;
  const child = spawn(
    process.execPath,
    [MAIN, 'worker', '--ledger', ledger, '--data-dir', dataDir, ...args],
    {
      env: {
        ...process.env,
        HOLDOVER_LOG_LEVEL: 'info',
        NODE_OPTIONS: REST_BETWEEN_STEPS,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const log: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => log.push(chunk.toString()));
  await ready(child, log);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  return {
    pid: child.pid ?? 0,
    log: () => log.join(''),
    kill9: () => kill9(child),
    async terminate() {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    dispose: () => kill9(child),
  };
}

function ready(child: ChildProcess, log: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('waiting for jobs')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`exited with ${code}: ${log.join('')}`)));
  });
}
