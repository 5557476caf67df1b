import { randomUUID } from 'node:crypto';
import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import { outputNodes } from '../translate/workflow.ts';
import type { Logger } from '../telemetry.ts';
import { type Json, stringifyJson } from '../wire/json.ts';
import type { Caller, JobApi } from '../wire/jobs.ts';
import type { ObjectInfo } from '../wire/v1.ts';
import type { Graph } from '../wire/v2.ts';
import { isPlain } from './accept.ts';
import type { Board, LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import { type Foundling, graphOf } from './foundling.ts';
import type { PromptJournal } from './prompt-journal.ts';
import type { Pursuit } from './pursuit.ts';
import type { SharedCounter } from './submission.ts';

/** Makes jobs that were submitted through v2 prompts of v1: in the queue, on sockets, in history. */
export type Adopter = {
  /** Resolves when the job is on record, or is not to be; never rejects. */
  adopt(foundling: Foundling): Promise<void>;
  /** Its end was asked for, though not here. */
  noteCancel(caller: Caller, jobId: string): Promise<void>;
  /** Waits for those on their way. */
  close(): Promise<void>;
};

type Deps = {
  readonly jobs: Pick<JobApi, 'workflow'>;
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly journal: Pick<PromptJournal, 'claim' | 'askCancel'>;
  readonly board: Board;
  readonly follower: Follower;
  readonly pursuit: Pick<Pursuit, 'pursue'>;
  readonly counter: SharedCounter;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  readonly log: Logger;
  readonly now: () => number;
};

export function createAdopter(deps: Deps): Adopter {
  const { ledger, journal, board, follower, pursuit, counter, log, now } = deps;
  const tasks = new Set<Promise<void>>();
  const underWay = new Set<string>();

  /** The same job comes again when its maker sent its idempotency key again. */
  async function isKnown({ caller: { user }, jobId }: Foundling): Promise<boolean> {
    if (board.find(user, jobId)) return true;
    return (await ledger.prompts.findByJob(user, jobId)) !== undefined;
  }

  async function show(foundling: Foundling): Promise<LivePrompt> {
    const { caller, jobId, extraData, graph = {} } = foundling;
    const key = randomUUID();
    const number = foundling.order ?? (await counter.next());
    await journal.claim(key);
    const prompt = follower.adopt(
      {
        key,
        promptId: isPlain(jobId) ? jobId : key,
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
    follower.attach(prompt, { jobId, graph, targets: [] });
    void foundling.answered.then(() => follower.release(prompt));
    return prompt;
  }

  async function takeIn(foundling: Foundling): Promise<void> {
    if (await isKnown(foundling)) return;
    const prompt = await show(foundling);
    try {
      prompt.graph = foundling.graph ?? (await askedFor(deps, foundling));
      prompt.targets = await targetsOf(deps, prompt);
      await ledger.prompts.insert(rowOf(prompt, foundling.jobId));
    } finally {
      await follower.begin(prompt);
    }
  }

  async function once(foundling: Foundling): Promise<void> {
    const name = `${foundling.caller.user} ${foundling.jobId}`;
    if (underWay.has(name)) return;
    underWay.add(name);
    try {
      await takeIn(foundling);
    } catch (error) {
      const { user } = foundling.caller;
      log.error({ err: error, user, jobId: foundling.jobId }, 'a v2 job is not on record for v1');
    } finally {
      underWay.delete(name);
    }
  }

  return {
    adopt(foundling) {
      const task = once(foundling).finally(() => tasks.delete(task));
      tasks.add(task);
      return task;
    },
    async noteCancel(caller, jobId) {
      const { user } = caller;
      const prompt = board.find(user, jobId);
      if (!prompt || prompt.cancelAsked) return;
      prompt.cancelAsked = true;
      journal.askCancel(prompt.key);
      await ledger.prompts.askCancel(prompt.key, now()).catch((error: unknown) => {
        log.error({ err: error, user, jobId }, 'a cancel is not on record');
      });
      // The service's answer went to the caller unread; asked again, it tells what became of the job.
      await pursuit.pursue(prompt, caller);
    },
    async close() {
      await Promise.all(tasks);
    },
  };
}

/** A job without a workflow that can be seen runs all the same. */
async function askedFor({ jobs }: Deps, { caller, jobId }: Foundling): Promise<Graph> {
  const read = await jobs.workflow(caller, jobId);
  return (read.ok ? graphOf(read.value.workflow as Json) : undefined) ?? {};
}

async function targetsOf(deps: Deps, prompt: LivePrompt): Promise<readonly string[]> {
  return outputNodes(prompt.graph, await deps.objectInfo(prompt.caller).catch(() => ({})));
}

function rowOf(prompt: LivePrompt, jobId: string): PromptRow {
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
