import { randomUUID } from 'node:crypto';
import { createLazyJson } from '../lib/lazy-json.ts';
import { NEW_PROMPT, type PromptRow } from '../ledger/columns.ts';
import { BackgroundTasks } from '../lib/concurrency.ts';
import { outputNodes } from '../translate/file-mentions.ts';
import { type Json, stringifyJson } from '../protocol/json.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { Graph } from '../protocol/v2.ts';
import type { PromptPorts } from './ports.ts';
import { isPathSafeId } from './submit/ids.ts';
import type { LivePrompt } from './live-prompt.ts';
import type { Follower } from './follow/follower.ts';
import { type ExternalJob, graphOf } from './external-job.ts';
import type { JobCanceller } from './follow/cancel-job.ts';

/**
 * Shows jobs that were submitted through v2 as v1 prompts: in the queue, on sockets and in history.
 */
export class ExternalJobImporter {
  readonly #ports: PromptPorts;
  readonly #follower: Follower;
  readonly #jobCanceller: JobCanceller;
  readonly #tasks = new BackgroundTasks();
  readonly #inProgress = new Set<string>();

  constructor(ports: PromptPorts, follower: Follower, jobCanceller: JobCanceller) {
    this.#ports = ports;
    this.#follower = follower;
    this.#jobCanceller = jobCanceller;
  }

  /** Resolves when the job is recorded, or is not going to be. Never rejects. */
  importJob(externalJob: ExternalJob): Promise<void> {
    const { caller, jobId } = externalJob;
    const name = `${caller.user} ${jobId}`;
    if (this.#inProgress.has(name)) return Promise.resolve();
    this.#inProgress.add(name);
    const imported = this.#tasks.run(
      () => this.#importNewJob(externalJob),
      (error) => {
        const facts = { event: 'external_job.import_failed', err: error, user: caller.user, jobId };
        this.#ports.frames.log.error(facts, 'could not record a v2 job as a v1 prompt');
      },
    );
    return imported.finally(() => this.#inProgress.delete(name));
  }

  /** Records that a cancel of this job was sent to the upstream through v2. */
  async recordCancel(caller: Caller, jobId: string): Promise<void> {
    const { records, frames, policy } = this.#ports;
    const { user } = caller;
    await records.eventLog.followUser(user);
    const prompt = frames.livePrompts.find(user, jobId);
    if (!prompt || prompt.cancelRequested) return;
    prompt.cancelRequested = true;
    void records.eventLog.requestCancel({ key: prompt.key, user });
    await records.prompts.askCancel(prompt.key, policy.clock.now()).catch((error: unknown) => {
      const facts = { event: 'cancel.record_failed', err: error, user, jobId };
      frames.log.error(facts, 'could not record the cancel of a v2 job');
    });
    // The service's answer went to the caller unread. A second cancel tells what became of the job.
    await this.#jobCanceller.cancelJob(prompt, caller);
  }

  /** Waits for imports in progress. */
  close(): Promise<void> {
    return this.#tasks.close();
  }

  async #importNewJob(externalJob: ExternalJob): Promise<void> {
    const { jobs, records } = this.#ports;
    if (await this.#isKnown(externalJob)) return;
    const prompt = await this.#trackJob(externalJob);
    try {
      prompt.graph = externalJob.graph ?? (await this.#fetchGraph(externalJob));
      const info = await jobs.objectInfo(prompt.caller).catch(() => ({}));
      prompt.targets = outputNodes(prompt.graph, info);
      await records.prompts.insert(toExternalJobRow(prompt, externalJob.jobId));
    } finally {
      await this.#follower.follow(prompt);
    }
  }

  /**
   * True when the job is known: a caller that repeats its idempotency key gets the same job again.
   */
  async #isKnown({ caller: { user }, jobId }: ExternalJob): Promise<boolean> {
    const { frames, records } = this.#ports;
    if (frames.livePrompts.find(user, jobId)) return true;
    return (await records.prompts.findByJob(user, jobId)) !== undefined;
  }

  async #trackJob(externalJob: ExternalJob): Promise<LivePrompt> {
    const { records, policy } = this.#ports;
    const { caller, jobId, extraData, graph = {} } = externalJob;
    const key = randomUUID();
    const number = externalJob.order ?? (await records.counter.next());
    const createdAtMs = policy.clock.now();
    await records.eventLog.claim({ key, user: caller.user });
    const prompt = this.#follower.trackPrompt(
      {
        key,
        promptId: isPathSafeId(jobId) ? jobId : key,
        number,
        clientId: null,
        createdAtMs,
        lazy: {
          graph: createLazyJson(graph),
          extraData: createLazyJson({ ...extraData, create_time: createdAtMs }),
        },
        targets: [],
        isV2Job: true,
      },
      caller,
    );
    // Opened at once, so that no event of the job is missed.
    this.#follower.openEventStream(prompt, { jobId, graph, targets: [] });
    void externalJob.answered.then(() => this.#follower.releaseFrames(prompt));
    return prompt;
  }

  /** Reads the workflow. A job whose workflow cannot be read runs all the same. */
  async #fetchGraph({ caller, jobId }: ExternalJob): Promise<Graph> {
    const read = await this.#ports.jobs.api.workflow(caller, jobId);
    return (read.ok ? graphOf(read.value.workflow as Json) : undefined) ?? {};
  }
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
