import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Program, type Side, startProgram } from './program.ts';

export const THIS_CHECKOUT = fileURLToPath(new URL('../../../..', import.meta.url));
const HEAP = fileURLToPath(new URL('./programs/against/heap.js', import.meta.url));
/** Flags of Node: the program answers `ask` with the bytes that it still holds after collecting garbage. */
export const WATCH_HEAP: readonly string[] = ['--expose-gc', '--import', HEAP];
const LOOP_DELAY = fileURLToPath(new URL('./programs/loop-delay.js', import.meta.url));

export type HoldoverOptions = {
  readonly workDir: string;
  /** A built checkout of this repository; by default this one. */
  readonly checkout?: string | undefined;
  /** By default it is the program under measurement. */
  readonly side?: Side;
  readonly args?: readonly string[];
  readonly dataDir?: string;
  /** It answers `ask` with the delay of its event loop. */
  readonly watchLoop?: true;
  /** It answers `ask` with the bytes that it still holds after collecting garbage. */
  readonly watchHeap?: true;
};

/** The built server as a user starts it, its log in a file. */
export async function startHoldover(options: HoldoverOptions): Promise<Program> {
  const {
    workDir,
    checkout = THIS_CHECKOUT,
    side = 'subject',
    args = [],
    watchLoop,
    watchHeap,
  } = options;
  const dataDir = options.dataDir ?? mkdtempSync(join(workDir, 'data-'));
  const hooks = [...(watchLoop ? ['--import', LOOP_DELAY] : []), ...(watchHeap ? WATCH_HEAP : [])];
  return startProgram({
    command: process.execPath,
    args: [...hooks, join(checkout, 'dist/main.js'), '--port', '0', '--data-dir', dataDir, ...args],
    side,
    logFile: join(workDir, 'holdover.log'),
  });
}

/** Measures with a far server on the processor of the load; `act` gets the options to put a Holdover in front of it. */
export function inFrontOf<T>(
  far: string,
  options: HoldoverOptions,
  act: (options: HoldoverOptions) => Promise<T>,
): Promise<T> {
  return withFar({ workDir: options.workDir, far }, (url) =>
    act({ ...options, args: ['--upstream', url] }),
  );
}

/** The same for another program; `act` gets the address of the far server. */
export async function withFar<T>(
  { workDir, far }: { readonly workDir: string; readonly far: string },
  act: (url: string) => Promise<T>,
): Promise<T> {
  const upstream = await startHoldover({ workDir, checkout: far, side: 'load' });
  try {
    return await act(upstream.url);
  } finally {
    await upstream.stop();
  }
}

/** Where a data directory survives nothing and waits for no disk. */
export const MEMORY_DIR = '/dev/shm';

const NEVER = { first: 3_600_000, last: 3_600_000 } as const;

/** Prompts whose jobs wait are neither streamed nor polled: their acceptance alone is measured. */
export const NO_FOLLOWING: readonly string[] = [
  '--limits',
  JSON.stringify({
    upstream: { maxStreams: 0, pollMs: { watched: NEVER, unwatched: NEVER, queued: NEVER } },
  }),
];
