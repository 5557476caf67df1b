import { Worker } from 'node:worker_threads';
import { packageUrl } from '../../lib/package-url.ts';
import { publicMessage } from './job-error.ts';
import type { FromWorker, RunEnd, RunRequest, ToWorker, WorkerSetup } from './worker-protocol.ts';

/** How a run ended: as the worker reported, or with the end of its thread. */
export type ThreadEnd =
  | RunEnd
  | { readonly kind: 'lost'; readonly reason: string; readonly outOfMemory: boolean };

type CurrentRun = {
  readonly worker: Worker;
  onMessage(message: Exclude<FromWorker, { type: 'end' }>): void;
  end(end: ThreadEnd): void;
};

/**
 * One worker thread, which is used for one job after the other and started again when it exits. It does not exist
 * before the first `run`.
 */
export class WorkerThread {
  readonly #setup: WorkerSetup;
  #worker: Worker | undefined;
  #current: CurrentRun | undefined;

  constructor(setup: WorkerSetup) {
    this.#setup = setup;
  }

  /** Runs a job. Only one job may run at a time. */
  run(request: RunRequest, onMessage: CurrentRun['onMessage']): Promise<ThreadEnd> {
    const worker = (this.#worker ??= this.#spawn());
    worker.postMessage(request);
    return new Promise((resolve) => (this.#current = { worker, onMessage, end: resolve }));
  }

  reply(message: Extract<ToWorker, { type: 'reply' }>): void {
    this.#current?.worker.postMessage(message);
  }

  /** Drops the results that the thread keeps for a user. */
  forget(user: string): void {
    this.#worker?.postMessage({ type: 'forget', user } satisfies ToWorker);
  }

  /** Terminates the thread now. A running job ends as lost. */
  async terminate(): Promise<void> {
    const ending = this.#worker;
    this.#worker = undefined;
    await ending?.terminate();
  }

  #spawn(): Worker {
    const started = new Worker(packageUrl('dist/engine/execution/worker-entry.js'), {
      workerData: this.#setup,
      execArgv: [],
    });
    let failure: NodeJS.ErrnoException | undefined;
    started.on('message', (message: FromWorker) => {
      if (message.type === 'end') this.#finish(started, message.end);
      else if (this.#current?.worker === started) this.#current.onMessage(message);
    });
    started.on('error', (error) => (failure = error));
    started.on('exit', (code) => {
      if (this.#worker === started) this.#worker = undefined;
      const reason = (failure && publicMessage(failure)) ?? `its thread ended with code ${code}`;
      const outOfMemory = failure?.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#finish(started, { kind: 'lost', reason, outOfMemory });
    });
    return started;
  }

  #finish(ending: Worker, end: ThreadEnd): void {
    const ended = this.#current;
    if (ended?.worker !== ending) return;
    this.#current = undefined;
    ended.end(end);
  }
}
