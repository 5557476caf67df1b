import { Worker } from 'node:worker_threads';
import { packageUrl } from '../../lib/package-url.ts';
import { publicMessage } from './job-error.ts';
import type { FromWorker, RunEnd, RunRequest, ToWorker, WorkerSetup } from './worker-protocol.ts';

/** How a run ended: as the worker reported, or with the thread. */
export type ThreadEnd =
  | RunEnd
  | { readonly kind: 'lost'; readonly reason: string; readonly outOfMemory: boolean };

/** One worker thread, reused between jobs and started again when it exits. */
export type WorkerThread = ReturnType<typeof createWorkerThread>;

type CurrentRun = {
  onMessage(message: Exclude<FromWorker, { type: 'end' }>): void;
  end(end: ThreadEnd): void;
};

/** No thread exists before `start` or `run`. */
export function createWorkerThread(setup: WorkerSetup) {
  let worker: Worker | undefined;
  let current: CurrentRun | undefined;
  const finish = (end: ThreadEnd): void => {
    const ended = current;
    current = undefined;
    ended?.end(end);
  };
  const spawn = (): Worker => {
    const started = new Worker(packageUrl('dist/upstreams/execution/worker-entry.js'), {
      workerData: setup,
      execArgv: [],
    });
    let failure: NodeJS.ErrnoException | undefined;
    started.on('message', (messages: readonly FromWorker[]) => {
      for (const message of messages) {
        if (message.type === 'end') finish(message.end);
        else current?.onMessage(message);
      }
    });
    started.on('error', (error) => (failure = error));
    started.on('exit', (code) => {
      if (worker === started) worker = undefined;
      const reason = (failure && publicMessage(failure)) ?? `its thread ended with code ${code}`;
      finish({ kind: 'lost', reason, outOfMemory: failure?.code === 'ERR_WORKER_OUT_OF_MEMORY' });
    });
    return started;
  };
  return {
    /** One job at a time. */
    run(
      request: RunRequest,
      onMessage: (message: Exclude<FromWorker, { type: 'end' }>) => void,
    ): Promise<ThreadEnd> {
      worker ??= spawn();
      worker.postMessage(request);
      return new Promise((resolve) => (current = { onMessage, end: resolve }));
    },
    reply: (message: Extract<ToWorker, { type: 'reply' }>): void => worker?.postMessage(message),
    /** Starts the thread before its first job; not for a test's server, which often ends without one. */
    start(): void {
      if (process.env['HOLDOVER_WARM_UP'] !== 'off') worker ??= spawn();
    },
    /** Terminates the thread now; a running job ends as lost. */
    async terminate(): Promise<void> {
      await worker?.terminate();
    },
  };
}
