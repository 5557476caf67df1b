import { createThreads } from '../../lib/threads.ts';
import type { Logger } from '../../observability/log.ts';
import type { Task, TaskEnd } from './thread-model.ts';

/** The worker threads that run models. */
export type ModelThreads = ReturnType<typeof createModelThreads>;

/** Creates the threads. They start with the first task and are kept. */
export function createModelThreads(options: {
  readonly limits: { readonly threads: number; readonly maxWaiting: number };
  readonly log: Logger;
}) {
  const { threads: count, maxWaiting } = options.limits;
  const threads = createThreads({
    module: 'dist/router/local/thread-worker.js',
    // If the number may shrink, waiting tasks lack a thread after an abort.
    min: count,
    max: count,
    onError: (error) =>
      options.log.error({ event: 'models.thread_failed', err: error }, 'a model thread failed'),
  });
  let tasks = 0;
  return {
    /** Runs a task. `busy`: too many tasks wait already. An abort ends the thread of the task. */
    async run(task: Task, signal: AbortSignal): Promise<TaskEnd | 'busy'> {
      if (tasks >= count + maxWaiting) return 'busy';
      tasks++;
      try {
        return (await threads.run(task, { signal, name: 'runTask' })) as TaskEnd;
      } finally {
        tasks--;
      }
    },
    close: () => threads.close(),
  };
}
