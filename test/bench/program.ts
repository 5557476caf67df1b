import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

/** A running program under measurement, or one that helps to measure. */
export type Program = {
  /** The address it serves. */
  readonly url: string;
  /** Processor time of the process, its threads and its children so far. */
  cpuNs(): number;
  rssBytes(): number;
  /** Highest since the last `resetPeak`. */
  peakRssBytes(): number;
  resetPeak(): void;
  /** Asks one of our own programs something over its channel. */
  ask<T>(request: unknown): Promise<T>;
  stop(): Promise<void>;
};

/** Whose processor a program runs on: the one under measurement has one for itself. */
export type Side = 'subject' | 'load';

type Start = {
  readonly command: string;
  readonly args: readonly string[];
  readonly side: Side;
  /** Where its standard error goes; else to ours. */
  readonly logFile?: string;
  /** Given: it is reached there; else it prints `serving URL`. */
  readonly url?: string;
};

const CPU_OF = { subject: '0', load: '1' } as const;

/** True when subject and load can run on processors of their own here. */
export function canPin(): boolean {
  return availableParallelism() > 1 && isInstalled('taskset');
}

export function isInstalled(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

/** A command line that runs on one side's processor. */
function pinned(side: Side, command: string, args: readonly string[]): [string, string[]] {
  return canPin() ? ['taskset', ['-c', CPU_OF[side], command, ...args]] : [command, [...args]];
}

/** Starts a program and waits until it serves. */
export async function startProgram(start: Start): Promise<Program> {
  const [command, args] = pinned(start.side, start.command, start.args);
  const log = start.logFile === undefined ? 'inherit' : openSync(start.logFile, 'a');
  const stdio: StdioOptions = ['ignore', 'pipe', log, 'ipc'];
  const child = spawn(command, args, { stdio });
  if (log !== 'inherit') closeSync(log);
  const url =
    start.url ?? (await soon(servedAt(child), `${start.command} ${start.args.join(' ')}`));
  const pid = child.pid ?? 0;
  return {
    url,
    cpuNs: () => cpuNsOf(pid),
    rssBytes: () => statusField(pid, 'VmRSS'),
    peakRssBytes: () => statusField(pid, 'VmHWM'),
    // Five: the peak is what it is now.
    resetPeak: () => writeFileSync(`/proc/${pid}/clear_refs`, '5'),
    async ask(request) {
      child.send(request as object);
      const [answer] = await soon(once(child, 'message'), `an answer of ${start.args.join(' ')}`);
      return answer as never;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 3000);
      await once(child, 'exit');
      clearTimeout(late);
    },
  };
}

const LATE_MS = 120_000;

/** Fails rather than waiting for ever for a program that is stuck. */
async function soon<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited too long for ${what}`)), LATE_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Starts one of the programs beside this file; by default it is part of the load. */
export function startOurs(
  name: string,
  { side = 'load', args = [] }: { readonly side?: Side; readonly args?: readonly string[] } = {},
): Promise<Program> {
  const path = fileURLToPath(new URL(`./programs/${name}.js`, import.meta.url));
  return startProgram({ command: process.execPath, args: [path, ...args], side });
}

function servedAt(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const url = /^(?:serving|To see the GUI go to:) (\S+)$/m.exec(text)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.once('exit', (code) => reject(new Error(`${child.spawnargs.join(' ')}: exit ${code}`)));
  });
}

function cpuNsOf(pid: number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, id) => sum + threadsNs(id), 0);
}

function childrenOf(pid: number): number[] {
  try {
    const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return ids === '' ? [] : ids.split(' ').map(Number);
  } catch {
    return [];
  }
}

function threadsNs(pid: number): number {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // A thread that has just ended.
    }
  }
  return sum;
}

function statusField(pid: number, name: string): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;
}
