import type { Tinypool } from 'tinypool';
import { lazily } from './concurrency.ts';
import { packageUrl } from './package-url.ts';

type ThreadsOptions = {
  /** The module of the build whose functions the threads run, for example `dist/…/thread.js`. */
  readonly module: string;
  /** The threads that are kept, and the most. With fewer than the most, run no more tasks at a time. */
  readonly min: number;
  readonly max: number;
  readonly onError: (error: unknown) => void;
};

type TaskOptions = {
  /** The name of the function. */
  readonly name: string;
  /** An abort ends the thread of the task. */
  readonly signal?: AbortSignal;
  /** Buffers of the task that are moved to the thread, not copied. */
  readonly transferList?: ArrayBuffer[];
};

/** Worker threads that run the functions of one module. */
export type Threads = {
  run(task: unknown, options: TaskOptions): Promise<unknown>;
  close(): Promise<void>;
};

/** The heap limit of one thread. Pictures are outside the heap. */
const MAX_HEAP_MB = 512;

/** A thread beyond the minimum ends when it was idle for so long. */
const IDLE_MS = 10_000;

/** Creates the threads. They start with the first task. */
export function createThreads(options: ThreadsOptions): Threads {
  // Loading may fail, for example without free file descriptors.
  const pool = lazily(() => openPool(options));
  return {
    run: async (task, taskOptions) => (await pool.get()).run(task, taskOptions),
    async close() {
      await (await pool.known())?.destroy();
    },
  };
}

async function openPool({ module, min, max, onError }: ThreadsOptions): Promise<Tinypool> {
  const { Tinypool } = await import('tinypool');
  const pool = new Tinypool({
    filename: packageUrl(module).href,
    minThreads: min,
    maxThreads: max,
    idleTimeout: IDLE_MS,
    useAtomics: false,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  pool.on('error', onError);
  return pool;
}
