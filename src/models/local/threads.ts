import type { Tinypool } from 'tinypool';
import { lazily } from '../../lib/concurrency.ts';
import { packageUrl } from '../../lib/package-url.ts';
import type { Logger } from '../../observability/log.ts';
import type { ModelLimits } from '../limits.ts';
import type { Task, TaskEnd } from './thread-model.ts';

/** The worker threads that run models. */
export type Threads = ReturnType<typeof createThreads>;

/** The heap limit of one thread. Pictures are outside the heap. */
const MAX_HEAP_MB = 512;

/** Creates the threads. They start with the first task and are kept. */
export function createThreads(options: {
  readonly limits: Pick<ModelLimits, 'threads' | 'maxWaiting'>;
  readonly log: Pick<Logger, 'error'>;
}) {
  const { threads, maxWaiting } = options.limits;
  // Loading may fail, for example without free file descriptors.
  const pool = lazily(() => openPool(threads, options.log));
  let tasks = 0;
  return {
    /** Runs a task. `busy`: too many tasks wait already. An abort ends the thread of the task. */
    async run(task: Task, signal: AbortSignal): Promise<TaskEnd | 'busy'> {
      if (tasks >= threads + maxWaiting) return 'busy';
      tasks++;
      try {
        return (await (await pool.get()).run(task, { signal, name: 'runTask' })) as TaskEnd;
      } finally {
        tasks--;
      }
    },
    async close(): Promise<void> {
      await (await pool.known())?.destroy();
    },
  };
}

/**
 * Opens a fixed number of threads: in a pool that may shrink, waiting tasks lack a thread after an
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
