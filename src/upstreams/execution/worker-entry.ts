/**
 * Entry of the worker threads: runs one job at a time, and keeps pixels and the cache between jobs.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { NodeDef } from '../../nodes/node.ts';
import { createNodeCache } from './node-cache.ts';
import {
  type AskMainThread,
  RUN_FLAG,
  type ToWorker,
  type WorkerSetup,
} from '../jobs/worker-protocol.ts';
import { openWorkerFiles } from './job-files.ts';
import type { OutputPlacer } from './place-output.ts';
import { type MessageBatch, createMessageBatch } from './message-batch.ts';
import { runJob } from './run-job.ts';

type NodeModule = {
  readonly ALL_NODES: ReadonlyMap<string, NodeDef>;
};

if (!parentPort) throw new Error('worker-entry must be started as a worker thread');
void serve(parentPort, workerData as WorkerSetup);

async function serve(port: MessagePort, setup: WorkerSetup): Promise<void> {
  const { ALL_NODES: nodes } = (await import(setup.nodesModule)) as NodeModule;
  const cache = createNodeCache({ maxBytes: setup.cacheBytes });
  const messages = createMessageBatch(port);
  const requests = createRequestSender((message) => messages.post(message));
  const deps = {
    nodes,
    cache,
    ...openWorkerFiles(setup, requests.ask),
    ask: requests.ask,
    messages,
  };
  port.on('message', (message: ToWorker) => {
    if (message.type === 'reply') return requests.settle(message);
    if (message.type === 'forget') return cache.forget(message.user);
    void runJob(message, deps).then((end) => {
      messages.post({ type: 'end', end });
      void syncOutputs(deps.outputs, new Int32Array(message.flags));
    });
  });
}

/**
 * Syncs outputs. Only the next sync of the ledger waits for this. If it fails, the main thread
 * syncs them.
 */
async function syncOutputs(outputs: OutputPlacer, flags: Int32Array): Promise<void> {
  try {
    await outputs.sync();
    Atomics.store(flags, RUN_FLAG.filesOnDisk, 1);
    Atomics.notify(flags, RUN_FLAG.filesOnDisk);
  } catch {
    // The flag stays unset.
  }
}

function createRequestSender(post: MessageBatch['post']): {
  ask: AskMainThread;
  settle(reply: ToWorker & { type: 'reply' }): void;
} {
  const unanswered = new Map<number, { resolve(value: never): void; reject(error: Error): void }>();
  let lastId = 0;
  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        unanswered.set(++lastId, { resolve, reject });
        post({ type: 'question', id: lastId, ...question });
      }),
    settle(reply) {
      const request = unanswered.get(reply.id);
      unanswered.delete(reply.id);
      if ('failure' in reply)
        request?.reject(Object.assign(new Error(reply.failure), { code: reply.code }));
      else request?.resolve(reply.value as never);
    },
  };
}
