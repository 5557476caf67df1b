import { setImmediate as nextTurn } from 'node:timers/promises';
import { reached } from '../../lib/crash-point.ts';
import type { Outputs } from '../assets/outputs.ts';
import type { OutputRetention } from '../assets/retention.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import type { LiveJob } from './live-job.ts';
import type { WorkerRequest, WorkerRequests } from './worker-protocol.ts';

/** Answers a request that a worker makes for a job. */
export type HandleWorkerRequest = <K extends keyof WorkerRequests>(
  job: LiveJob,
  request: Extract<WorkerRequest, { kind: K }>,
) => Promise<WorkerRequests[K]['answer']>;

type Handlers = {
  readonly [K in keyof WorkerRequests]: (
    job: LiveJob,
    ask: WorkerRequests[K]['ask'],
  ) => Promise<WorkerRequests[K]['answer']>;
};

/** Answers in the main thread, since only this thread knows all jobs of a user. */
export function createWorkerRequestHandler({
  blobs,
  outputs,
  outputRetention,
  begin,
}: {
  readonly blobs: Blobs;
  readonly outputs: Outputs;
  readonly outputRetention: OutputRetention;
  /** Records that a node of this job begins. The record survives `kill -9` when this resolves. */
  readonly begin: (job: LiveJob) => Promise<void>;
}): HandleWorkerRequest {
  const handlers: Handlers = {
    begin: async (job) => {
      await begin(job);
      reached('after-run-begin');
      return null;
    },
    save: ({ user, id: jobId }, { nodeId, file }) => outputs.commit({ user, jobId, nodeId, file }),
    read: async (_job, hash) => (await blobs.read(hash)) ?? null,
    alive: (job, wanted) => outputRetention.retain(wanted, job.user),
    handled: () => nextTurn(null),
  };
  return (job, request) => handlers[request.kind](job, request.ask as never) as never;
}
