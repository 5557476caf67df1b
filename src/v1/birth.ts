import type { Ledger } from '../ledger/ledger.ts';
import { inTurns } from '../lib/turns.ts';
import { adoptCoercedSteps } from '../translate/workflow.ts';
import type { Json } from '../wire/json.ts';
import { stringifySteps } from '../wire/json-steps.ts';
import type { Job } from '../wire/v2.ts';
import type { LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import { note } from './kept.ts';
import type { Plan } from './plan.ts';
import type { Pursuit } from './pursuit.ts';

/** Brings a prompt and its v2 job together, durably. */
export type Birth = (prompt: LivePrompt, plan: Plan, job: Job) => Promise<void>;

export function createBirth(deps: {
  readonly ledger: Ledger;
  readonly follower: Follower;
  readonly pursuit: Pursuit;
}): Birth {
  const { ledger, follower, pursuit } = deps;
  return async (prompt, plan, job) => {
    // v1 shows literals as v2 coerced them, files as the client named them.
    const coerced = job.x_workflow ?? {};
    const graph = await inTurns(adoptCoercedSteps(plan.graph, coerced, plan.placed));
    follower.attach(prompt, { jobId: job.id, graph, targets: plan.outputs });
    const isChanged = graph !== plan.graph;
    const graphJson = isChanged ? await inTurns(stringifySteps(graph as Json)) : undefined;
    if (graphJson !== undefined) note(prompt.kept.graph, graph, graphJson);
    await ledger.prompts.attach(prompt.key, {
      promptId: prompt.promptId,
      jobId: job.id,
      ...(graphJson !== undefined && { graphJson }),
      targetsJson: JSON.stringify(plan.outputs),
    });
    await follower.begin(prompt);
    if (prompt.cancelAsked) await pursuit.pursue(prompt);
  };
}
