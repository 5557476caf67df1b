import { Worker } from 'node:worker_threads';
import { packageUrl } from '../../lib/package-url.ts';
import { publicMessage } from './job-error.ts';
import type { FromWorker, RunEnd, RunRequest, ToWorker, WorkerSetup } from './worker-protocol.ts';

/** How a run ended: as the worker reported, or with the end of its thread. */
export type ThreadEnd =
  | RunEnd
  | { readonly kind: 'lost'; readonly reason: string; readonly outOfMemory: boolean };

/** One worker thread, which is used for one job after the other and started again when it exits. */
export interface WorkerThread {
  /** Runs a job. Only one job may run at a time. */
  run(
    request: RunRequest,
    onMessage: (message: Exclude<FromWorker, { type: 'end' }>) => void,
  ): Promise<ThreadEnd>;
  readonly reply: (message: Extract<ToWorker, { type: 'reply' }>) => void;
  /** Drops the results that the thread keeps for a user. */
  readonly forget: (user: string) => void;
  /** Terminates the thread now. A running job ends as lost. */
  terminate(): Promise<void>;
}

type CurrentRun = {
  readonly worker: Worker;
  onMessage(message: Exclude<FromWorker, { type: 'end' }>): void;
  end(end: ThreadEnd): void;
};

/** Creates a worker. Its thread does not exist before `start` or `run`. */
export function createWorkerThread(setup: WorkerSetup): WorkerThread {
  let worker: Worker | undefined;
  let current: CurrentRun | undefined;
  const finish = (ending: Worker, end: ThreadEnd): void => {
    const ended = current;
    if (ended?.worker !== ending) return;
    current = undefined;
    ended.end(end);
  };
  const spawn = (): Worker => {
    const started = new Worker(packageUrl('dist/engine/execution/worker-entry.js'), {
      workerData: setup,
      execArgv: [],
    });
    let failure: NodeJS.ErrnoException | undefined;
    started.on('message', (message: FromWorker) => {
      if (message.type === 'end') finish(started, message.end);
      else if (current?.worker === started) current.onMessage(message);
    });
    started.on('error', (error) => (failure = error));
    started.on('exit', (code) => {
      if (worker === started) worker = undefined;
      const reason = (failure && publicMessage(failure)) ?? `its thread ended with code ${code}`;
      const outOfMemory = failure?.code === 'ERR_WORKER_OUT_OF_MEMORY';
      finish(started, { kind: 'lost', reason, outOfMemory });
    });
    return started;
  };
  return {
    run(request, onMessage) {
      const used = (worker ??= spawn());
      used.postMessage(request);
      return new Promise((resolve) => (current = { worker: used, onMessage, end: resolve }));
    },
    reply: (message) => current?.worker.postMessage(message),
    forget: (user) => worker?.postMessage({ type: 'forget', user } satisfies ToWorker),
    async terminate() {
      const ending = worker;
      worker = undefined;
      await ending?.terminate();
    },
  };
}
