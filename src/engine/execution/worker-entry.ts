/**
 * Entry of the worker threads: runs one job at a time, and keeps pixels and the cache between jobs.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { NodeDef } from '../../nodes/node.ts';
import { createNodeCache } from './node-cache.ts';
import type { AskMainThread, FromWorker, ToWorker, WorkerSetup } from '../jobs/worker-protocol.ts';
import { runJob } from './run-job.ts';

type NodeModule = {
  readonly ALL_NODES: ReadonlyMap<string, NodeDef>;
};

if (!parentPort) throw new Error('worker-entry must be started as a worker thread');
void serve(parentPort, workerData as WorkerSetup);

async function serve(port: MessagePort, setup: WorkerSetup): Promise<void> {
  const { ALL_NODES: nodes } = (await import(setup.nodesModule)) as NodeModule;
  const cache = createNodeCache({ maxBytes: setup.cacheBytes });
  const post = (message: FromWorker): void => port.postMessage(message, movedMemory(message));
  const requests = createRequestSender(post);
  const deps = { nodes, cache, ask: requests.ask, post, spoolDir: setup.spoolDir };
  port.on('message', (message: ToWorker) => {
    if (message.type === 'reply') return requests.settle(message);
    if (message.type === 'forget') return cache.forget(message.user);
    void runJob(message, deps).then((end) => post({ type: 'end', end }));
  });
}

/** Returns the memory that moves to the main thread instead of being copied. */
function movedMemory(message: FromWorker): ArrayBuffer[] {
  return message.type === 'preview' ? [message.data.bytes.buffer as ArrayBuffer] : [];
}

function createRequestSender(post: (message: FromWorker) => void): {
  ask: AskMainThread;
  settle(reply: ToWorker & { type: 'reply' }): void;
} {
  const unanswered = new Map<number, { resolve(value: never): void; reject(error: Error): void }>();
  let lastId = 0;
  return {
    ask: (kind, ...args) =>
      new Promise((resolve, reject) => {
        unanswered.set(++lastId, { resolve, reject });
        post({ type: 'request', id: lastId, kind, args } as FromWorker);
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
