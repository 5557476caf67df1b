import { Worker } from 'node:worker_threads';
import { packageUrl } from '../lib/package-url.ts';
import { sayable } from './failure.ts';
import type { FromWorker, RunEnd, RunOrder, ToWorker, WorkerSetup } from './protocol.ts';

/** How a run ended as seen from outside: by its own word, or with the thread. */
export type SlotEnd =
  | RunEnd
  | { readonly kind: 'lost'; readonly reason: string; readonly outOfMemory: boolean };

/** One worker thread, kept warm between jobs and born again when it dies. */
export type WorkerSlot = {
  /** One job at a time. */
  run(
    order: RunOrder,
    onMessage: (message: Exclude<FromWorker, { type: 'end' }>) => void,
  ): Promise<SlotEnd>;
  reply(message: Extract<ToWorker, { type: 'reply' }>): void;
  /** Starts the thread ahead of its first job. */
  warm(): void;
  /** Ends the thread now; a running job ends as lost. */
  kill(): Promise<void>;
};

type Current = {
  onMessage(message: Exclude<FromWorker, { type: 'end' }>): void;
  end(end: SlotEnd): void;
};

/** Prepares a slot; no thread exists before `warm` or `run`. */
export function createWorkerSlot(setup: WorkerSetup): WorkerSlot {
  let worker: Worker | undefined;
  let current: Current | undefined;
  const finish = (end: SlotEnd): void => {
    const ended = current;
    current = undefined;
    ended?.end(end);
  };
  const spawn = (): Worker => {
    const born = new Worker(packageUrl('dist/engine/worker.js'), {
      workerData: setup,
      execArgv: [],
    });
    let failure: NodeJS.ErrnoException | undefined;
    born.on('message', (message: FromWorker) => {
      if (message.type === 'end') finish(message.end);
      else current?.onMessage(message);
    });
    born.on('error', (error) => (failure = error));
    born.on('exit', (code) => {
      if (worker === born) worker = undefined;
      const reason = (failure && sayable(failure)) ?? `its thread ended with code ${code}`;
      finish({ kind: 'lost', reason, outOfMemory: failure?.code === 'ERR_WORKER_OUT_OF_MEMORY' });
    });
    return born;
  };
  return {
    run(order, onMessage) {
      worker ??= spawn();
      worker.postMessage(order);
      return new Promise((resolve) => (current = { onMessage, end: resolve }));
    },
    reply: (message) => worker?.postMessage(message),
    warm() {
      worker ??= spawn();
    },
    async kill() {
      await worker?.terminate();
    },
  };
}
