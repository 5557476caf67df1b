import { type JobCalls, type JobWorkflow, type Result, isGone, ok } from '../protocol/job-api.ts';
import type { Account } from './calls/accounts.ts';
import { invalidAnswer } from './calls/errors.ts';
import type { Snapshots } from './events/snapshots.ts';
import { readJob, readWorkflow } from './schemas.ts';
import type { Job } from '../protocol/v2.ts';
import { submitJob } from './submit.ts';
import type { RemoteServices } from './remote-services.ts';
import type { RemoteClient } from './calls/calls.ts';

/** The calls about jobs, each with the account of its caller. */
export function createJobCalls(services: RemoteServices): JobCalls {
  const { accounts, client, events, files, jobSearch } = services;
  const { snapshots, sharedStreams } = events;
  const { uploadPaths } = files;
  return {
    submit: (caller, request) =>
      accounts.with(caller, async (account) => {
        const workflow = uploadPaths.rewriteWorkflow(request.workflow, caller.user);
        if (workflow === request.workflow) return submitJob(services, account, request);
        // The prepared JSON text is that of the old workflow, so it is left out.
        const { workflowJson: _, ...rest } = request;
        return submitJob(services, account, { ...rest, workflow });
      }),
    search: (caller, lost) =>
      accounts.with(caller, (account) => {
        const workflow = uploadPaths.rewriteWorkflow(lost.workflow, caller.user);
        return jobSearch.search(account, { ...lost, workflow });
      }),
    get: (caller, jobId) => accounts.with(caller, (account) => snapshots.get(account, jobId)),
    list: (caller, query) => accounts.with(caller, (account) => jobSearch.list(account, query)),
    events: (caller, jobId, signal) =>
      accounts.with(caller, (account) => sharedStreams.events(account, caller, jobId, signal)),
    workflow: (caller, jobId) =>
      accounts.with(caller, (account) => readJobWorkflow(client, snapshots, { account, jobId })),
    cancel: (caller, jobId) =>
      accounts.with(caller, (account) => cancelJob(client, snapshots, { account, jobId })),
  };
}

type JobOfAccount = { readonly account: Account; readonly jobId: string };

async function readJobWorkflow(
  { calls }: RemoteClient,
  snapshots: Snapshots,
  { account, jobId }: JobOfAccount,
): Promise<Result<JobWorkflow>> {
  const path = snapshots.workflowTarget(account, jobId);
  const answer = await calls.callIdempotent(account, { method: 'GET', path });
  if (!answer.ok) return answer;
  const read = readWorkflow(answer.value.json);
  return read ? ok(read) : invalidAnswer();
}

async function cancelJob(
  client: RemoteClient,
  snapshots: Snapshots,
  { account, jobId }: JobOfAccount,
): Promise<Result<Job>> {
  // The job brings its links.
  if (!snapshots.latest(account, jobId)) {
    const read = await snapshots.get(account, jobId);
    if (!read.ok) return read;
  }
  const path = snapshots.target(account, jobId, 'cancel');
  const answer = await client.calls.callIdempotent(account, { method: 'POST', path });
  if (!answer.ok) {
    if (isGone(answer.error)) await snapshots.confirm(account, jobId);
    return answer;
  }
  const job = readJob(answer.value.json);
  if (!job) return snapshots.refresh(account, jobId);
  // The job was removed from the queue, or is between two lists of the server: the next answer
  // decides.
  if (job.status === 'expired') return snapshots.confirm(account, jobId);
  if (job.status === 'queued') warnIgnoredCancel(client);
  return ok(snapshots.store(account, job));
}

/**
 * Warns once that a cancel was answered with success and the job still waits. The self-hosted
 * server asks its engine and ignores the answer; an engine without that route cancels nothing. A
 * queued job is gone when the cancel is answered; a running job may continue for a while.
 */
function warnIgnoredCancel({ capabilities, log }: RemoteClient): void {
  if (capabilities.ignoresCancel) return;
  capabilities.ignoresCancel = true;
  log.warn({ event: 'upstream.cancel_ignored' }, CANCEL_IGNORED);
}

const CANCEL_IGNORED =
  'the job service answered a cancel with success, but the job still waits: it stays in the queue ' +
  'and will run. Behind comfy-api-proxy the engine must have POST /api/jobs/{id}/cancel';
