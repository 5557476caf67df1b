import { randomUUID } from 'node:crypto';
import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import { type V1Refusal, goodOutputs, refuseShape, toPromptRefusal } from '../translate/errors.ts';
import { pruneTo } from '../translate/graph.ts';
import { secretsOf, withoutSecrets } from '../translate/secrets.ts';
import { chosenOutputs, extraPngInfo, outputNodes } from '../translate/workflow.ts';
import { type Json, type JsonObject, stringifyJson } from '../wire/json.ts';
import type { Caller, JobApi, Result } from '../wire/jobs.ts';
import type { Job } from '../wire/v2.ts';
import type { NodeErrors, ObjectInfo } from '../wire/v1.ts';
import type { Board } from './board.ts';
import { V1Error, promptRefusal } from './errors.ts';
import type { Follower } from './follower.ts';
import type { AssetRewriter, Rewritten } from './rewrite.ts';
import type { Submission } from './submission.ts';

/** What `POST /prompt` answers; `release` lets the prompt's frames go. */
export type Accepted = {
  readonly promptId: string;
  readonly number: number;
  readonly nodeErrors: NodeErrors;
  readonly release: () => void;
};

export type Acceptor = { accept(caller: Caller, submission: Submission): Promise<Accepted> };

type Deps = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly board: Board;
  readonly follower: Follower;
  readonly rewriter: AssetRewriter;
  readonly objectInfo: () => Promise<ObjectInfo>;
  readonly now: () => number;
};

/** The label a job carries upstream, by which it is found again after a crash. */
export const KEY_LABEL = 'holdover_key';

type Attempt = {
  readonly job: Job;
  readonly nodeErrors: NodeErrors;
  readonly targets: readonly string[];
};

/**
 * Turns a submission into a v2 job. The intent is on disk before the job exists, and the job's id
 * before the client hears of it, so that nothing acknowledged is ever lost.
 */
export function createAcceptor(deps: Deps): Acceptor {
  const { jobs, ledger, board, follower, now } = deps;

  async function accept(caller: Caller, submission: Submission): Promise<Accepted> {
    refuseTwin(board, caller, submission);
    const misshapen = refuseShape(submission.graph as JsonObject);
    if (misshapen) throw refused(misshapen);
    const outputs = outputsOf(submission, await deps.objectInfo());
    const rewritten = await deps.rewriter.rewrite(caller.user, submission.graph);
    const row = rowOf(caller, submission, now());
    await ledger.prompts.insert(row);
    const attempt = await attemptOrForget(caller, row, { submission, outputs, rewritten });
    const { job, targets } = attempt;
    const prompt = follower.adopt(
      {
        key: row.key,
        promptId: submission.promptId ?? job.id,
        jobId: job.id,
        number: row.number,
        clientId: row.clientId,
        createdAtMs: row.createdAtMs,
        graph: rewritten.restore(job.x_workflow),
        extraData: withoutSecrets(submission.extraData),
        targets,
      },
      caller,
    );
    await ledger.prompts.attach(row.key, {
      promptId: prompt.promptId,
      jobId: job.id,
      graphJson: stringifyJson(prompt.graph as Json),
      targetsJson: JSON.stringify(targets),
    });
    return {
      promptId: prompt.promptId,
      number: submission.number,
      nodeErrors: attempt.nodeErrors,
      release: () => follower.follow(prompt),
    };
  }

  async function attemptOrForget(caller: Caller, row: PromptRow, plan: Plan): Promise<Attempt> {
    try {
      return await attempt(caller, row, plan);
    } catch (error) {
      if (error instanceof V1Error) await ledger.prompts.remove(row.key);
      throw error;
    }
  }

  /** v2 takes a graph whole or not at all; v1 runs the good outputs and reports the rest. */
  async function attempt(caller: Caller, row: PromptRow, plan: Plan): Promise<Attempt> {
    let targets = plan.outputs;
    let nodeErrors: NodeErrors = {};
    for (;;) {
      const sent = await send(caller, row.key, plan, targets);
      if (sent.ok) return { job: sent.value, nodeErrors, targets };
      const { placed } = plan.rewritten;
      const context = { outputs: targets, placed };
      const refusal = toPromptRefusal(sent.error, plan.submission.graph, context);
      nodeErrors = { ...nodeErrors, ...refusal.body.node_errors };
      const good = goodOutputs(refusal.body.node_errors, targets);
      const partly = refusal.status === 400 && good.length > 0 && good.length < targets.length;
      if (!partly)
        throw refused({ ...refusal, body: { ...refusal.body, node_errors: nodeErrors } });
      targets = good;
    }
  }

  function send(
    caller: Caller,
    key: string,
    plan: Plan,
    outputs: readonly string[],
  ): Promise<Result<Job>> {
    const { submission, rewritten } = plan;
    const whole = submission.partialTargets === undefined && outputs === plan.outputs;
    return jobs.submit(caller, {
      workflow: whole ? rewritten.graph : pruneTo(rewritten.graph, outputs),
      extraData: secretsOf(submission.extraData),
      idempotencyKey: outputs === plan.outputs ? key : `${key}.${outputs.length}`,
      metadata: { [KEY_LABEL]: key },
      order: submission.number,
      provenance: {
        prompt: submission.graph as Json,
        extraPngInfo: extraPngInfo(submission.extraData),
      },
    });
  }

  return { accept };
}

type Plan = {
  readonly submission: Submission;
  readonly outputs: readonly string[];
  readonly rewritten: Rewritten;
};

/** The original accepts a live id again under another number; the same number kills its worker. */
function refuseTwin(board: Board, caller: Caller, { promptId, number }: Submission): void {
  const twin = promptId === undefined ? undefined : board.find(caller.user, promptId);
  if (twin?.promptId !== promptId || twin?.number !== number) return;
  const message = `A prompt with the id ${promptId} and this number is already queued.`;
  throw new V1Error(400, promptRefusal('duplicate_prompt_id', message) as unknown as Json);
}

/** The outputs to execute; with targets given that name none of them there is nothing to run. */
function outputsOf({ graph, partialTargets }: Submission, info: ObjectInfo): readonly string[] {
  const chosen = chosenOutputs(outputNodes(graph, info), partialTargets);
  if (chosen.length > 0 || partialTargets === undefined) return chosen;
  throw new V1Error(
    400,
    promptRefusal('prompt_no_outputs', 'Prompt has no outputs') as unknown as Json,
  );
}

function refused({ status, body, retryAfterSeconds }: V1Refusal): V1Error {
  const headers: { [name: string]: string } =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  return new V1Error(status, body as unknown as Json, { headers });
}

function rowOf(caller: Caller, submission: Submission, nowMs: number): PromptRow {
  const key = randomUUID();
  return {
    key,
    user: caller.user,
    promptId: submission.promptId ?? key,
    jobId: null,
    number: submission.number,
    clientId: submission.clientId,
    createdAtMs: nowMs,
    graphJson: stringifyJson(submission.graph as Json),
    extraDataJson: stringifyJson(withoutSecrets(submission.extraData)),
    targetsJson: '[]',
    state: 'submitting',
    entryJson: null,
    statusWord: null,
    startedAtMs: null,
    endedAtMs: null,
  };
}
