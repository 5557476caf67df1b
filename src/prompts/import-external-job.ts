import { randomUUID } from 'node:crypto';
import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import { outputNodes } from '../translate/file-mentions.ts';
import type { Logger } from '../observability/log.ts';
import { type Json, stringifyJson } from '../protocol/json.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { isPathSafeId } from './accept.ts';
import type { LivePrompts, LivePrompt } from './live-prompts.ts';
import type { Follower } from './follow/follower.ts';
import { type ExternalJob, graphOf } from './external-job.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import type { JobCanceller } from './follow/cancel-job.ts';
import type { SharedCounter } from './submission.ts';

/** Makes jobs that were submitted through v2 prompts of v1: in the queue, on sockets, in history. */
export type ExternalJobImporter = {
  /** Resolves when the job is on record, or is not to be; never rejects. */
  importJob(externalJob: ExternalJob): Promise<void>;
  /** Its end was asked for, though not here. */
  recordCancel(caller: Caller, jobId: string): Promise<void>;
  /** Waits for those on their way. */
  close(): Promise<void>;
};

type ExternalJobImporterOptions = {
  readonly jobs: Pick<JobApi, 'workflow'>;
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly promptEventLog: Pick<PromptEventLog, 'claim' | 'requestCancel'>;
  readonly livePrompts: LivePrompts;
  readonly follower: Follower;
  readonly jobCanceller: Pick<JobCanceller, 'cancelJob'>;
  readonly counter: SharedCounter;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  readonly log: Logger;
  readonly now: () => number;
};

export function createExternalJobImporter(deps: ExternalJobImporterOptions): ExternalJobImporter {
  const { ledger, promptEventLog, livePrompts, follower, jobCanceller, counter, log, now } = deps;
  const tasks = new Set<Promise<void>>();
  const inProgress = new Set<string>();

  /** The same job comes again when its maker sent its idempotency key again. */
  async function isKnown({ caller: { user }, jobId }: ExternalJob): Promise<boolean> {
    if (livePrompts.find(user, jobId)) return true;
    return (await ledger.prompts.findByJob(user, jobId)) !== undefined;
  }

  async function trackJob(externalJob: ExternalJob): Promise<LivePrompt> {
    const { caller, jobId, extraData, graph = {} } = externalJob;
    const key = randomUUID();
    const number = externalJob.order ?? (await counter.next());
    await promptEventLog.claim(key);
    const prompt = follower.trackPrompt(
      {
        key,
        promptId: isPathSafeId(jobId) ? jobId : key,
        number,
        clientId: null,
        createdAtMs: now(),
        graph,
        extraData,
        targets: [],
        isResumed: false,
        isV2Job: true,
      },
      caller,
    );
    // At once: what the job does meanwhile is not to be missed.
    follower.attachJob(prompt, { jobId, graph, targets: [] });
    void externalJob.answered.then(() => follower.releaseFrames(prompt));
    return prompt;
  }

  async function importNewJob(externalJob: ExternalJob): Promise<void> {
    if (await isKnown(externalJob)) return;
    const prompt = await trackJob(externalJob);
    try {
      prompt.graph = externalJob.graph ?? (await fetchGraph(deps, externalJob));
      prompt.targets = await findTargets(deps, prompt);
      await ledger.prompts.insert(toPromptRow(prompt, externalJob.jobId));
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
    } catch (error) {
      const { user } = externalJob.caller;
      log.error({ err: error, user, jobId: externalJob.jobId }, 'a v2 job is not on record for v1');
    } finally {
      inProgress.delete(name);
    }
  }

  return {
    importJob(externalJob) {
      const task = importOnce(externalJob).finally(() => tasks.delete(task));
      tasks.add(task);
      return task;
    },
    async recordCancel(caller, jobId) {
      const { user } = caller;
      const prompt = livePrompts.find(user, jobId);
      if (!prompt || prompt.cancelRequested) return;
      prompt.cancelRequested = true;
      promptEventLog.requestCancel(prompt.key);
      await ledger.prompts.askCancel(prompt.key, now()).catch((error: unknown) => {
        log.error({ err: error, user, jobId }, 'a cancel is not on record');
      });
      // The service's answer went to the caller unread; asked again, it tells what became of the job.
      await jobCanceller.cancelJob(prompt, caller);
    },
    async close() {
      await Promise.all(tasks);
    },
  };
}

/** A job without a workflow that can be seen runs all the same. */
async function fetchGraph(
  { jobs }: ExternalJobImporterOptions,
  { caller, jobId }: ExternalJob,
): Promise<Graph> {
  const read = await jobs.workflow(caller, jobId);
  return (read.ok ? graphOf(read.value.workflow as Json) : undefined) ?? {};
}

async function findTargets(
  deps: ExternalJobImporterOptions,
  prompt: LivePrompt,
): Promise<readonly string[]> {
  return outputNodes(prompt.graph, await deps.objectInfo(prompt.caller).catch(() => ({})));
}

function toPromptRow(prompt: LivePrompt, jobId: string): PromptRow {
  const { key, promptId, number, clientId, createdAtMs, graph, extraData, targets } = prompt;
  return {
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
    cancelAskedAtMs: null,
    entryJson: null,
    statusWord: null,
    startedAtMs: null,
    endedAtMs: null,
  };
}
