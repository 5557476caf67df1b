import { randomUUID } from 'node:crypto';
import { NEW_PROMPT, type PromptRow } from '../ledger/columns.ts';
import { BackgroundTasks } from '../lib/concurrency.ts';
import { outputNodes } from '../translate/file-mentions.ts';
import { type Json, stringifyJson } from '../protocol/json.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { Graph } from '../protocol/v2.ts';
import type { PromptContext } from './context.ts';
import { isPathSafeId } from './submit/ids.ts';
import type { LivePrompt } from './live-prompts.ts';
import type { Follower } from './follow/follower.ts';
import { type ExternalJob, graphOf } from './external-job.ts';
import type { JobCanceller } from './follow/cancel-job.ts';

type ExternalJobImporterOptions = PromptContext & {
  readonly follower: Follower;
  readonly jobCanceller: JobCanceller;
};

/**
 * Shows jobs that were submitted through v2 as v1 prompts: in the queue, on sockets and in history.
 */
export function createExternalJobImporter(options: ExternalJobImporterOptions) {
  const { ledger, promptEventLog, livePrompts, follower, log, clock } = options;
  const tasks = new BackgroundTasks();
  const inProgress = new Set<string>();

  /**
   * True when the job is known: a caller that repeats its idempotency key gets the same job again.
   */
  async function isKnown({ caller: { user }, jobId }: ExternalJob): Promise<boolean> {
    if (livePrompts.find(user, jobId)) return true;
    return (await ledger.prompts.findByJob(user, jobId)) !== undefined;
  }

  async function trackJob(externalJob: ExternalJob): Promise<LivePrompt> {
    const { caller, jobId, extraData, graph = {} } = externalJob;
    const key = randomUUID();
    const number = externalJob.order ?? (await options.counter.next());
    const createdAtMs = clock.now();
    await promptEventLog.claim({ key, user: caller.user });
    const prompt = follower.trackPrompt(
      {
        key,
        promptId: isPathSafeId(jobId) ? jobId : key,
        number,
        clientId: null,
        createdAtMs,
        graph,
        extraData: { ...extraData, create_time: createdAtMs },
        targets: [],
        isV2Job: true,
      },
      caller,
    );
    // Opened at once, so that no event of the job is missed.
    follower.openEventStream(prompt, { jobId, graph, targets: [] });
    void externalJob.answered.then(() => follower.releaseFrames(prompt));
    return prompt;
  }

  async function importNewJob(externalJob: ExternalJob): Promise<void> {
    if (await isKnown(externalJob)) return;
    const prompt = await trackJob(externalJob);
    try {
      prompt.graph = externalJob.graph ?? (await fetchGraph(options, externalJob));
      prompt.targets = outputNodes(
        prompt.graph,
        await options.objectInfo(prompt.caller).catch(() => ({})),
      );
      await ledger.prompts.insert(toExternalJobRow(prompt, externalJob.jobId));
    } finally {
      await follower.follow(prompt);
    }
  }

  async function importOnce(externalJob: ExternalJob): Promise<void> {
    const name = `${externalJob.caller.user} ${externalJob.jobId}`;
    if (inProgress.has(name)) return;
    inProgress.add(name);
    try {
      await importNewJob(externalJob);
    } finally {
      inProgress.delete(name);
    }
  }

  return {
    /** Resolves when the job is recorded, or is not going to be. Never rejects. */
    importJob(externalJob: ExternalJob): Promise<void> {
      const { caller, jobId } = externalJob;
      return tasks.run(
        () => importOnce(externalJob),
        (error) => {
          const facts = { event: 'external_job.import_failed', err: error, user: caller.user };
          log.error({ ...facts, jobId }, 'could not record a v2 job as a v1 prompt');
        },
      );
    },
    /** Records that a cancel of this job was sent to the upstream through v2. */
    async recordCancel(caller: Caller, jobId: string): Promise<void> {
      const { user } = caller;
      await promptEventLog.followUser(user);
      const prompt = livePrompts.find(user, jobId);
      if (!prompt || prompt.cancelRequested) return;
      prompt.cancelRequested = true;
      void promptEventLog.requestCancel({ key: prompt.key, user });
      await ledger.prompts.askCancel(prompt.key, clock.now()).catch((error: unknown) => {
        const facts = { event: 'cancel.record_failed', err: error, user, jobId };
        log.error(facts, 'could not record the cancel of a v2 job');
      });
      // The service's answer went to the caller unread. A second cancel tells what became of the
      // job.
      await options.jobCanceller.cancelJob(prompt, caller);
    },
    /** Waits for imports in progress. */
    close: () => tasks.close(),
  };
}

/** Reads the workflow. A job whose workflow cannot be read runs all the same. */
async function fetchGraph(
  { jobs }: Pick<PromptContext, 'jobs'>,
  { caller, jobId }: ExternalJob,
): Promise<Graph> {
  const read = await jobs.workflow(caller, jobId);
  return (read.ok ? graphOf(read.value.workflow as Json) : undefined) ?? {};
}

function toExternalJobRow(prompt: LivePrompt, jobId: string): PromptRow {
  const { key, promptId, number, clientId, createdAtMs, graph, extraData, targets } = prompt;
  return {
    ...NEW_PROMPT,
    key,
    user: prompt.caller.user,
    promptId,
    jobId,
    number,
    clientId,
    createdAtMs,
    graphJson: stringifyJson(graph as Json),
    extraDataJson: stringifyJson(extraData),
    targetsJson: JSON.stringify(targets),
    state: 'live',
    intentJson: '{}',
  };
}
