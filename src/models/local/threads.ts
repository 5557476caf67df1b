import type { Tinypool } from 'tinypool';
import { packageUrl } from '../../lib/package-url.ts';
import type { Logger } from '../../observability/log.ts';
import type { ModelLimits } from '../limits.ts';
import type { Task, TaskEnd } from './thread-model.ts';

/** The worker threads that run models. */
export type Threads = ReturnType<typeof createThreads>;

/** Heap limit of one thread; pictures are outside the heap. */
const MAX_HEAP_MB = 512;

/** Threads start with the first task, and stay. */
export function createThreads(options: {
  readonly limits: Pick<ModelLimits, 'threads' | 'maxWaiting'>;
  readonly log: Pick<Logger, 'error'>;
}) {
  const { threads, maxWaiting } = options.limits;
  let pool: Promise<Tinypool> | undefined;
  let tasks = 0;
  const open = (): Promise<Tinypool> =>
    openPool(threads, options.log).catch((error: unknown) => {
      // Without file descriptors, for instance, nothing loads: the next task tries again.
      pool = undefined;
      throw error;
    });
  return {
    /** Runs a task; `busy`: too many wait already. An abort ends the thread it runs on. */
    async run(task: Task, signal: AbortSignal): Promise<TaskEnd | 'busy'> {
      if (tasks >= threads + maxWaiting) return 'busy';
      pool ??= open();
      tasks++;
      try {
        return (await (await pool).run(task, { signal, name: 'runTask' })) as TaskEnd;
      } finally {
        tasks--;
      }
    },
    async close(): Promise<void> {
      await (await pool)?.destroy();
    },
  };
}

/**
 * A fixed number of threads: a pool that may shrink leaves waiting tasks without a thread after an
 * abort.
 */
async function openPool(threads: number, log: Pick<Logger, 'error'>): Promise<Tinypool> {
  const { Tinypool } = await import('tinypool');
  const pool = new Tinypool({
    filename: packageUrl('dist/models/local/thread-worker.js').href,
    minThreads: threads,
    maxThreads: threads,
    useAtomics: false,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  pool.on('error', (error: unknown) =>
    log.error({ event: 'models.thread_failed', err: error }, 'a model thread failed'),
  );
  return pool;
}
