import type { PromptContext } from '../context.ts';
import type { Follower } from '../follow/follower.ts';
import type { SendPlan } from './attempt.ts';
import type { LinkJob } from './link-job.ts';

export type SubmissionsOptions = PromptContext & {
  readonly follower: Follower;
  readonly sendPlan: SendPlan;
  readonly linkJob: LinkJob;
};
