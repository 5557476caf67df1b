import type { Clock } from '../../lib/clock.ts';
import { createLazyJson, readValue } from '../../lib/lazy-json.ts';
import { isRedisAway } from '../../lib/storage-errors.ts';
import type { Logger } from '../../observability/log.ts';
import { parseJson } from '../../protocol/json.ts';
import type { JobError } from '../../protocol/v2.ts';
import { type JobEnd, failedEnd } from './job-lifecycle.ts';
import { type LiveJob, type StopReason, writeJson } from './live-job.ts';
import type { FromWorker, RunRequest, StoredOutput } from './worker-protocol.ts';
import type { HandleWorkerRequest } from './worker-requests.ts';
import { RunReporter } from './run-reporter.ts';
import type { ThreadEnd, WorkerThread } from './worker-thread.ts';
import { type ResolvedWorkflow, resolveFiles } from './resolve-files.ts';
import { OUT_OF_MEMORY } from './job-error.ts';
import type { JobFiles } from '../assets/job-files.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import type { EngineLimits } from '../job-engine.ts';

/** The grace period when the process is shutting down. */
const SHUTDOWN_GRACE_MS = 1000;

export type RunnerOptions = {
  readonly limits: EngineLimits;
  readonly clock: Clock;
  readonly jobFiles: Pick<JobFiles, 'fileLookupOf'> & { readonly blobs: Pick<Blobs, 'sync'> };
  readonly answer: HandleWorkerRequest;
  readonly log: Logger;
};

/** Runs one job on a worker thread and returns how it ended. Rejects when Redis was unavailable. */
export async function runOnWorker(
  job: LiveJob,
  thread: WorkerThread,
  deps: RunnerOptions,
): Promise<JobEnd> {
  const named = { workflow: readValue(job.workflow), targets: job.targets };
  const resolved = await resolveFiles(named, deps.jobFiles.fileLookupOf(job.user, job.reads));
  if (resolved.missing.length + resolved.unknownFiles.size > 0) return missingAsset(resolved);
  if (job.stop.signal.aborted) return endOf({ kind: 'stopped' }, job, deps);
  const stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const reporter = new RunReporter(job, deps.clock);
  const release = enforceStop(job, { stopFlag, thread, ...deps });
  try {
    const request = await toRunRequest(job, resolved, { stopFlag, ...deps });
    const end = await exchangeMessages({ job, thread, reporter, request }, deps);
    const onDisk = syncOutputs(job, deps);
    job.filesOnDisk = () => onDisk;
    if (end.kind === 'succeeded') reporter.complete();
    return endOf(end, job, deps, reporter.current());
  } finally {
    release();
  }
}

/** Makes the files of a job survive a power cut; `undefined` when it has none. */
function syncOutputs(job: LiveJob, { jobFiles, log }: RunnerOptions): Promise<void> | undefined {
  if (job.outputs.length === 0) return undefined;
  const hashes = job.outputs.flatMap(({ hash }) => hash ?? []);
  return jobFiles.blobs.sync(hashes).catch((error: unknown) => {
    const facts = { event: 'job.files_not_synced', err: error, job: job.id };
    log.error(facts, 'files of a job could not be synced: a power cut may take them');
  });
}

type WorkerExchange = {
  readonly job: LiveJob;
  readonly thread: WorkerThread;
  readonly reporter: RunReporter;
  readonly request: RunRequest;
};

/** Handles the messages of the worker in their order, including commits to disk. */
async function exchangeMessages(
  { job, thread, reporter, request }: WorkerExchange,
  deps: RunnerOptions,
): Promise<ThreadEnd> {
  let away: { readonly error: unknown } | undefined;
  const answer = async (message: Extract<FromWorker, { type: 'request' }>): Promise<void> => {
    try {
      const value = await deps.answer(job, message);
      if (message.kind === 'save') reporter.output(value as StoredOutput);
      thread.reply({ type: 'reply', id: message.id, value });
    } catch (error) {
      deps.log.error(
        { event: 'worker.request_failed', err: error, job: job.id },
        'a request of a worker failed',
      );
      if (isRedisAway(error)) away ??= { error };
      const { code } = error as NodeJS.ErrnoException;
      const failure = `the engine could not do this: ${code ?? 'an internal error'}`;
      thread.reply({ type: 'reply', id: message.id, failure, ...(code !== undefined && { code }) });
    }
  };
  let handled = Promise.resolve();
  const end = await thread.run(request, (message) => {
    handled = handled.then(() =>
      message.type === 'request' ? answer(message) : reporter.apply(message),
    );
    // An error is thrown below, when the thread has ended.
    handled.catch(() => {});
  });
  await handled;
  if (end.kind !== 'failed') return end;
  if (away) throw away.error;
  const facts = { event: 'job.system_error', code: end.systemCode, job: job.id };
  if (end.systemCode !== undefined)
    deps.log.error(facts, 'a node failed with an error of the system');
  return end;
}

type StopOptions = Pick<RunnerOptions, 'limits' | 'clock'> & {
  readonly stopFlag: Int32Array;
  readonly thread: WorkerThread;
};

/**
 * Stops the job at its time limit. A stop first sets a flag that the node checks. After the grace
 * period it terminates the thread. Call the returned function when the run has ended.
 */
function enforceStop(job: LiveJob, options: StopOptions): () => void {
  const { stopFlag, thread, clock } = options;
  const { jobTimeMs, stopGraceMs } = options.limits;
  const { signal } = job.stop;
  const cancelTimeLimit = clock.callAfter(jobTimeMs, () =>
    job.stop.abort('timeout' satisfies StopReason),
  );
  let cancelTermination: (() => void) | undefined;
  const onStop = (): void => {
    Atomics.store(stopFlag, 0, 1);
    const isClosing = signal.reason === 'shutdown';
    const graceMs = isClosing ? Math.min(stopGraceMs, SHUTDOWN_GRACE_MS) : stopGraceMs;
    cancelTermination = clock.callAfter(graceMs, () => void thread.terminate());
  };
  signal.addEventListener('abort', onStop);
  return () => {
    signal.removeEventListener('abort', onStop);
    cancelTimeLimit();
    cancelTermination?.();
  };
}

async function toRunRequest(
  job: LiveJob,
  { workflow, files }: ResolvedWorkflow,
  { stopFlag, limits }: Pick<StopOptions, 'stopFlag' | 'limits'>,
): Promise<RunRequest> {
  const isUnchanged = workflow === readValue(job.workflow);
  return {
    type: 'run',
    user: job.user,
    workflowJson: await writeJson(isUnchanged ? job.workflow : createLazyJson(workflow)),
    targets: job.targets,
    files,
    provenanceJson: job.provenance && (await writeJson(job.provenance)),
    memoryLimitBytes: limits.jobMemoryBytes,
    stopFlag,
  };
}

/** `node`: the node that ran last. */
function endOf(
  end: ThreadEnd,
  { stop }: LiveJob,
  { limits }: RunnerOptions,
  node: Partial<JobError> = {},
): JobEnd {
  const { reason } = stop.signal;
  if (reason === 'canceled') return { status: 'canceled' };
  if (end.kind === 'succeeded') return { status: 'succeeded' };
  if (end.kind === 'failed')
    return { status: 'failed', error: parseJson(end.errorJson) as unknown as JobError };
  if (reason === 'shutdown') return { status: 'interrupted' };
  if (reason === 'timeout') {
    const message = `the job ran longer than its limit of ${limits.jobTimeMs / 1000} seconds`;
    return failedEnd('timeout', message, { ...node, x_exception_type: 'TimeoutError' });
  }
  const lost = end.kind === 'lost' ? end : { reason: 'it stopped unasked', outOfMemory: false };
  const message = `the worker running this job was lost: ${lost.reason}`;
  return lost.outOfMemory
    ? failedEnd('out_of_memory', message, { ...node, x_exception_type: OUT_OF_MEMORY })
    : failedEnd('worker_lost', message, node);
}

function missingAsset({ missing, unknownFiles }: ResolvedWorkflow): JobEnd {
  const unknown = [...unknownFiles.values()].flat().map((file) => file.value);
  const names = [...missing, ...unknown].join(', ');
  const message = `files of this workflow no longer exist: ${names}`;
  return failedEnd('missing_asset', message, { x_exception_type: 'FileNotFoundError' });
}
