import { V1Error, plainError } from '../dialects/errors.ts';
import { refuseFolderNames } from '../files/foreign-folders.ts';
import type { FileResolver } from '../files/resolve-files.ts';
import { runInSteps } from '../lib/event-loop.ts';
import type { Caller } from '../protocol/job-api.ts';
import { stringifySteps } from '../protocol/json-steps.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import { chosenOutputs, outputNodes } from '../translate/file-mentions.ts';
import { withReplacements } from '../translate/node-replacements.ts';
import { refuseShape } from '../translate/prompt-refusal.ts';
import type { PromptPorts } from './ports.ts';
import { createPromptKeys } from './submit/ids.ts';
import type { Submission } from './submission.ts';
import type { SubmissionDraft } from './submit/draft.ts';
import type { DuplicateIds } from './submit/duplicate-ids.ts';
import { createPlan } from './submit/plan.ts';
import { type Accepted, toV1Error } from './submit/answer.ts';
import type { Submissions } from './submit/submissions.ts';

export type { Accepted } from './submit/answer.ts';

type AcceptorParts = {
  readonly duplicateIds: DuplicateIds;
  readonly resolveFiles: FileResolver;
  readonly submissions: Submissions;
};

/**
 * Checks a submission, resolves the files it names, and submits it. A refusal is thrown as
 * `V1Error`.
 */
export class Acceptor {
  readonly #ports: PromptPorts;
  readonly #parts: AcceptorParts;
  readonly #newKey = createPromptKeys();

  constructor(ports: PromptPorts, parts: AcceptorParts) {
    this.#ports = ports;
    this.#parts = parts;
  }

  async accept(caller: Caller, submission: Submission): Promise<Accepted> {
    const { duplicateIds, submissions } = this.#parts;
    const existing = await duplicateIds.findTakenOver(caller, submission);
    if (existing) {
      const { promptId, number } = existing;
      return { promptId, number, nodeErrors: {}, releaseFrames: () => {} };
    }
    duplicateIds.refuseDuplicate(caller, submission);
    const refusal = refuseShape(submission.graph as JsonObject);
    if (refusal) throw toV1Error(refusal);
    return submissions.submit(await this.#draftOf(caller, submission));
  }

  async #draftOf(caller: Caller, sent: Submission): Promise<SubmissionDraft> {
    const { jobs, frames, policy } = this.#ports;
    const info = await jobs.objectInfo(caller);
    const createdAtMs = policy.clock.now();
    const submission = {
      ...sent,
      graph: withReplacements(sent.graph, info),
      extraData: { ...sent.extraData, create_time: createdAtMs },
    };
    const { graph, subfolder } = submission;
    const outputs = chooseOutputs(submission, info);
    const placed = await this.#parts.resolveFiles(caller, graph, subfolder);
    if (policy.traits.isService) refuseFolderNames({ graph, resolvedFiles: placed, outputs });
    const traceparent = frames.spans?.traceparentOf(caller);
    const details = { outputs, placed, caller, traceparent };
    const plan = createPlan(this.#newKey(createdAtMs), submission, details);
    const graphJson = await runInSteps(stringifySteps(plan.graph as Json));
    const extraDataJson = await runInSteps(stringifySteps(plan.extraData));
    return { caller, submission, plan, graphJson, extraDataJson, createdAtMs };
  }
}

/** Returns the outputs to execute. If the targets name no output, v1 answers with 400. */
function chooseOutputs({ graph, partialTargets }: Submission, info: ObjectInfo): readonly string[] {
  const chosen = chosenOutputs(outputNodes(graph, info), partialTargets);
  if (chosen.length > 0 || partialTargets === undefined) return chosen;
  throw new V1Error(400, plainError('prompt_no_outputs', 'Prompt has no outputs'));
}
