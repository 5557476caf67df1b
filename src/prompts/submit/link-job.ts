import type { PromptRow } from '../../ledger/ledger.ts';
import { runInSteps } from '../../lib/event-loop.ts';
import { applyCoercions } from '../../translate/file-mentions.ts';
import type { Json } from '../../protocol/json.ts';
import { stringifySteps } from '../../protocol/json-steps.ts';
import type { Job } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { rememberJson } from '../../lib/lazy-json.ts';
import type { SubmissionPlan } from './plan.ts';
import type { Follower } from '../follow/follower.ts';
import type { JobCanceller } from '../follow/cancel-job.ts';

/** The services that follow and cancel the jobs of prompts. */
export type FollowParts = { readonly follower: Follower; readonly jobCanceller: JobCanceller };

type LinkedPrompt = {
  readonly prompt: LivePrompt;
  readonly plan: SubmissionPlan;
  readonly job: Job;
};

/** Links a prompt to its v2 job and records that. */
export async function linkJob(
  { records, policy }: PromptPorts,
  { follower, jobCanceller }: FollowParts,
  { prompt, plan, job }: LinkedPrompt,
): Promise<void> {
  // v1 shows literals as v2 coerced them, and files as the client named them.
  const coerced = job.x_workflow ?? {};
  const graph = await runInSteps(applyCoercions(plan.graph, coerced, plan.resolvedFiles));
  follower.openEventStream(prompt, { jobId: job.id, graph, targets: plan.outputs });
  const isChanged = graph !== plan.graph;
  const graphJson = isChanged ? await runInSteps(stringifySteps(graph as Json)) : undefined;
  if (graphJson !== undefined) rememberJson(prompt.lazy.graph, graph, graphJson);
  const link: Partial<PromptRow> = {
    state: 'live',
    promptId: prompt.promptId,
    jobId: job.id,
    ...(graphJson !== undefined && { graphJson }),
    targetsJson: JSON.stringify(plan.outputs),
  };
  await records.prompts.update(prompt.key, 'unfinished', link, policy.durability);
  await follower.follow(prompt);
  // Not awaited: a link that fails is tried again, and this one is complete.
  if (prompt.cancelRequested) jobCanceller.cancelInBackground(prompt);
}
