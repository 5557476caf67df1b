// A prompt is linked to its job once, also when its job cannot be cancelled then.
import { expect, onTestFinished, test } from 'vitest';
import { JobCanceller } from '../../../src/prompts/follow/cancel-job.ts';
import type { Follower } from '../../../src/prompts/follow/follower.ts';
import type { LivePrompt } from '../../../src/prompts/live-prompt.ts';
import { linkJob } from '../../../src/prompts/submit/link-job.ts';
import type { SubmissionPlan } from '../../../src/prompts/submit/plan.ts';
import type { Job } from '../../../src/protocol/v2.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakePorts } from '../fake-ports.ts';

test('a prompt that was cancelled while it was sent is linked when the cancel of its job fails', async () => {
  const clock = createFakeClock(0);
  const events: string[] = [];
  const cancel = async (): Promise<unknown> => {
    events.push('cancel');
    if (clock.now() === 0) throw new Error('no room');
    return { ok: true, value: { status: 'canceled' } };
  };
  const prompt = { key: 'k', promptId: 'p', caller: { user: 'ann' }, cancelRequested: true };
  const live = prompt as unknown as LivePrompt;
  const ports = fakePorts({
    jobs: { api: { cancel } },
    records: { prompts: { update: async () => void events.push('link') } },
    frames: { livePrompts: new Set([live]) },
    policy: { clock, deadlineClock: clock },
  });
  const canceller = new JobCanceller(ports);
  onTestFinished(() => canceller.close());
  const follower = {
    openEventStream: (opened: LivePrompt, { jobId }: { jobId: string }) =>
      Object.assign(opened, { jobId }),
    follow: async () => void events.push('follow'),
  };
  const parts = { follower: follower as unknown as Follower, jobCanceller: canceller };
  const plan = { graph: {}, resolvedFiles: [], outputs: ['1'] } as unknown as SubmissionPlan;
  await linkJob(ports, parts, { prompt: live, plan, job: { id: 'j' } as Job });
  await clock.advance(1000);
  expect(events).toEqual(['link', 'follow', 'cancel', 'cancel']);
});
