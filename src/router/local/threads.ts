import { createThreads } from '../../lib/threads.ts';
import type { Logger } from '../../observability/log.ts';
import type { Task, TaskEnd } from './thread-model.ts';

/** The worker threads that run models. */
export interface ModelThreads {
  /** Runs a task. `busy`: too many tasks wait already. An abort ends the thread of the task. */
  run(task: Task, signal: AbortSignal): Promise<TaskEnd | 'busy'>;
  readonly close: () => Promise<void>;
}

/** Creates the threads. They start with the first task and are kept. */
export function createModelThreads(options: {
  readonly limits: { readonly threads: number; readonly maxWaiting: number };
  readonly log: Logger;
}): ModelThreads {
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
    async run(task, signal) {
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
