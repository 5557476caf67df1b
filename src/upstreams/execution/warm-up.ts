import { createNodeCache } from './node-cache.ts';
import { createMessageBatch } from './message-batch.ts';
import { runJob, type RunServices } from './run-job.ts';
import {
  type AskMainThread,
  createRunFlags,
  type RunRequest,
  type StoredOutput,
  type WorkerRequests,
} from '../jobs/worker-protocol.ts';

/** V8 compiles a function at its first call, and optimizes it by its types after a few more. */
const RUNS = 3;

const GRAPH = {
  1: {
    class_type: 'EmptyImage',
    inputs: { width: 8, height: 8, batch_size: 1, color: 0 },
  },
  2: { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
};

const OUTPUT: StoredOutput = {
  id: '',
  job_id: '',
  node_id: '2',
  name: '',
  type: 'image',
  content_type: 'image/png',
  size_bytes: 0,
  hash: '',
};

const ANSWERS: { readonly [K in keyof WorkerRequests]: WorkerRequests[K]['answer'] } = {
  begin: null,
  save: OUTPUT,
  store: null,
  read: null,
  counter: 1,
  alive: [],
  handled: null,
};

/**
 * Runs a small prompt without any effect, so that the first job of the thread finds its code loaded
 * and compiled. With the nodes of another library it ends at once.
 */
export async function warmUp(nodes: RunServices['nodes']): Promise<void> {
  const services: RunServices = {
    nodes,
    cache: createNodeCache({ maxBytes: 1 }),
    // No hash is computed: the library for it needs 3 MB from the first output on.
    outputs: { place: () => '', prepare: async () => {}, sync: async () => {} },
    inputs: { read: async () => new Uint8Array(), sha256: async () => '' },
    ask: (async ({ kind }) => ANSWERS[kind]) as AskMainThread,
    messages: createMessageBatch({ postMessage() {} }),
  };
  for (let run = 0; run < RUNS; run++) await runJob(newRequest(), services);
}

function newRequest(): RunRequest {
  const workflowJson = JSON.stringify(GRAPH);
  return {
    type: 'run',
    user: '',
    workflowJson,
    targets: ['2'],
    files: new Map(),
    provenanceJson: JSON.stringify({ prompt: GRAPH }),
    memoryLimitBytes: 2 ** 20,
    hasBegun: true,
    flags: createRunFlags(),
  };
}
