import { V1Error, plainError } from '../dialects/errors.ts';
import { refuseFolderNames } from '../files/foreign-folders.ts';
import { type FileResolver, createFileResolver } from '../files/resolve-files.ts';
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
import { DuplicateIds } from './submit/duplicate-ids.ts';
import { createPlan } from './submit/plan.ts';
import { type Accepted, toV1Error } from './submit/answer.ts';
import type { Submissions } from './submit/submissions.ts';
import type { PromptTakeover } from './take-over.ts';
import type { PromptParts } from './take-over-prompt.ts';

export type { Accepted } from './submit/answer.ts';

/**
 * Checks a submission, resolves the files it names, and submits it. A refusal is thrown as
 * `V1Error`.
 */
export class Acceptor {
  readonly #ports: PromptPorts;
  readonly #submissions: Submissions;
  readonly #duplicateIds: DuplicateIds;
  readonly #resolveFiles: FileResolver;
  readonly #newKey = createPromptKeys();

  constructor(ports: PromptPorts, parts: PromptParts, takeover: PromptTakeover) {
    this.#ports = ports;
    this.#submissions = parts.submissions;
    this.#duplicateIds = new DuplicateIds(ports, parts.follower, takeover);
    this.#resolveFiles = createFileResolver({
      files: ports.records.files,
      objectInfo: ports.jobs.objectInfo,
      mayFindOthersFiles: ports.policy.traits.isService,
    });
  }

  async accept(caller: Caller, submission: Submission): Promise<Accepted> {
    const refusal = refuseShape(submission.graph as JsonObject);
    const existing = refusal
      ? undefined
      : await this.#duplicateIds.findTakenOver(caller, submission);
    if (existing) {
      const { promptId, number } = existing;
      return { promptId, number, nodeErrors: {}, releaseFrames: () => {} };
    }
    this.#duplicateIds.refuseDuplicate(caller, submission);
    if (refusal) throw toV1Error(refusal);
    return this.#submissions.submit(await this.#draftOf(caller, submission));
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
    const resolvedFiles = await this.#resolveFiles(caller, graph, subfolder);
    if (policy.traits.isService) refuseFolderNames({ graph, resolvedFiles, outputs });
    const traceparent = frames.spans?.traceparentOf(caller);
    const details = { outputs, resolvedFiles, caller, traceparent };
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
