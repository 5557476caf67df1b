import type { Clock } from '../../lib/clock.ts';
import { createLazyJson, readValue } from '../../lib/lazy-json.ts';
import { isRedisAway } from '../../lib/storage-errors.ts';
import type { Logger } from '../../observability/log.ts';
import { parseJson } from '../../protocol/json.ts';
import type { JobError } from '../../protocol/v2.ts';
import { type JobEnd, failedEnd } from './job-lifecycle.ts';
import { type LiveJob, writeJson } from './live-job.ts';
import type { FromWorker, RunRequest, StoredOutput } from './worker-protocol.ts';
import type { HandleWorkerRequest } from './worker-requests.ts';
import { createRunReporter, type RunReporter } from './run-reporter.ts';
import type { ThreadEnd, WorkerThread } from './worker-thread.ts';
import type { ResolvedWorkflow } from './resolve-files.ts';

/** The grace period when the process is shutting down. */
const SHUTDOWN_GRACE_MS = 1000;

export type RunnerOptions = {
  readonly timeLimitMs: number;
  readonly memoryLimitBytes: number;
  /** How long a job may take to react to a stop. */
  readonly stopGraceMs: number;
  readonly clock: Clock;
  resolve(job: LiveJob): Promise<ResolvedWorkflow>;
  /** Makes the files with these hashes survive a power cut. */
  readonly syncFiles: (hashes: readonly string[]) => Promise<void>;
  readonly answer: HandleWorkerRequest;
  readonly log: Logger;
};

/** Runs one job on a worker thread and returns how it ended. Rejects when Redis was unavailable. */
export async function runOnWorker(
  job: LiveJob,
  thread: WorkerThread,
  deps: RunnerOptions,
): Promise<JobEnd> {
  const resolved = await deps.resolve(job);
  if (resolved.missing.length + resolved.unknownFiles.length > 0) return missingAsset(resolved);
  if (job.stop.reason !== undefined) return endOf({ kind: 'stopped' }, job, deps.timeLimitMs);
  const stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const reporter = createRunReporter(job, deps.clock);
  const release = enforceStop(job, { stopFlag, thread, ...deps });
  try {
    const request = await toRunRequest(job, resolved, { stopFlag, ...deps });
    const end = await exchangeMessages({ job, thread, reporter, request }, deps);
    const onDisk = syncOutputs(job, deps);
    job.filesOnDisk = () => onDisk;
    if (end.kind === 'succeeded') reporter.complete();
    return endOf(end, { stop: job.stop, ...reporter.current() }, deps.timeLimitMs);
  } finally {
    release();
  }
}

/** Makes the files of a job survive a power cut; `undefined` when it has none. */
function syncOutputs(job: LiveJob, { syncFiles, log }: RunnerOptions): Promise<void> | undefined {
  if (job.outputs.length === 0) return undefined;
  return syncFiles(job.outputs.flatMap(({ hash }) => hash ?? [])).catch((error: unknown) => {
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
  const answer = async (message: Extract<FromWorker, { type: 'question' }>): Promise<void> => {
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
      message.type === 'question' ? answer(message) : reporter.apply(message),
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

type StopOptions = Pick<RunnerOptions, 'timeLimitMs' | 'stopGraceMs' | 'clock'> & {
  readonly stopFlag: Int32Array;
  readonly thread: WorkerThread;
};

/**
 * Stops the job at its time limit. A stop first sets a flag that the node checks. After the grace
 * period it terminates the thread. Call the returned function when the run has ended.
 */
function enforceStop(job: LiveJob, options: StopOptions): () => void {
  const { stopFlag, thread, timeLimitMs, stopGraceMs, clock } = options;
  const cancelTimeLimit = clock.callAfter(timeLimitMs, () => job.stop.request('timeout'));
  let cancelTermination: (() => void) | undefined;
  const onStop = (): void => {
    Atomics.store(stopFlag, 0, 1);
    const isClosing = job.stop.reason === 'shutdown';
    const graceMs = isClosing ? Math.min(stopGraceMs, SHUTDOWN_GRACE_MS) : stopGraceMs;
    cancelTermination = clock.callAfter(graceMs, () => void thread.terminate());
  };
  const forget = job.stop.onRequest(onStop);
  return () => {
    forget();
    cancelTimeLimit();
    cancelTermination?.();
  };
}

async function toRunRequest(
  job: LiveJob,
  { workflow, files }: ResolvedWorkflow,
  { stopFlag, memoryLimitBytes }: Pick<RunRequest, 'stopFlag' | 'memoryLimitBytes'>,
): Promise<RunRequest> {
  const isUnchanged = workflow === readValue(job.workflow);
  return {
    type: 'run',
    user: job.user,
    workflowJson: await writeJson(isUnchanged ? job.workflow : createLazyJson(workflow)),
    targets: job.targets,
    files,
    provenanceJson: job.provenance && (await writeJson(job.provenance)),
    memoryLimitBytes,
    stopFlag,
  };
}

type EndedJob = Pick<LiveJob, 'stop'> & {
  readonly nodeId?: string | null;
  readonly classType?: string | null;
};

function endOf(end: ThreadEnd, job: EndedJob, timeLimitMs: number): JobEnd {
  const { reason } = job.stop;
  if (reason === 'canceled') return { status: 'canceled' };
  if (end.kind === 'succeeded') return { status: 'succeeded' };
  if (end.kind === 'failed')
    return { status: 'failed', error: parseJson(end.errorJson) as unknown as JobError };
  if (reason === 'shutdown') return { status: 'interrupted' };
  const { nodeId = null, classType = null } = job;
  if (reason === 'timeout') {
    const message = `the job ran longer than its limit of ${timeLimitMs / 1000} seconds`;
    return failedEnd('timeout', message, { exceptionType: 'TimeoutError', nodeId, classType });
  }
  const lost = end.kind === 'lost' ? end : { reason: 'it stopped unasked', outOfMemory: false };
  const message = `the worker running this job was lost: ${lost.reason}`;
  const code = lost.outOfMemory ? 'out_of_memory' : 'worker_lost';
  const exceptionType = lost.outOfMemory ? 'torch.OutOfMemoryError' : 'RuntimeError';
  return failedEnd(code, message, { exceptionType, nodeId, classType });
}

function missingAsset({ missing, unknownFiles }: ResolvedWorkflow): JobEnd {
  const names = [...missing, ...unknownFiles.map((file) => file.value)].join(', ');
  const message = `files of this workflow no longer exist: ${names}`;
  return failedEnd('missing_asset', message, { exceptionType: 'FileNotFoundError' });
}
