import type { LivePrompt } from '../../../src/prompts/live-prompts.ts';
import type { SubmissionPlan } from '../../../src/prompts/submit/plan.ts';

/** Without outputs, files and secrets. */
export const PLAN = {
  promptKey: 'k',
  idempotencyKey: 'k',
  graph: {},
  placed: [],
  outputs: [],
  isWhole: true,
  secrets: {},
  ownSecrets: [],
  extraData: {},
} as unknown as SubmissionPlan;

/** The prompt of the plan; `more`: members of its own. */
export function examplePrompt(more: Partial<LivePrompt> = {}): LivePrompt {
  const prompt = { key: 'k', promptId: 'p', caller: { user: 'ann' }, createdAtMs: 0 };
  return { ...prompt, ...more } as LivePrompt;
}
