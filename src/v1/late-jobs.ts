import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../telemetry.ts';
import { type JobApi, isGone } from '../wire/jobs.ts';
import type { Job } from '../wire/v2.ts';
import type { Again } from './again.ts';
import type { LivePrompt } from './board.ts';
import { type Pace, spread } from './pace.ts';
import { KEY_LABEL, type Plan } from './plan.ts';

/** Ends the jobs of prompts that were ended before it was known whether they have one. */
export type LateJobs = {
  /** Looks for it for a while; `found`: it is there already. */
  watch(prompt: LivePrompt, plan: Plan, found?: Job): void;
  close(): Promise<void>;
};

type Deps = {
  readonly jobs: Pick<JobApi, 'cancel'>;
  readonly again: Pick<Again, 'look'>;
  readonly pace: Pace;
  readonly log: Logger;
  readonly now: () => number;
};

export function createLateJobs({ jobs, again, pace, log, now }: Deps): LateJobs {
  const stop = new AbortController();
  const tasks = new Set<Promise<void>>();

  /** Calls until it answers true, less and less often, as long as lost submissions are looked for. */
  async function retry(act: () => Promise<boolean>): Promise<void> {
    const deadlineMs = now() + pace.searchWindowMs;
    const { first, last } = pace.searchMs;
    for (let waitMs = first; now() <= deadlineMs; waitMs = Math.min(last, waitMs * 1.5)) {
      try {
        if (await act()) return;
      } catch (error) {
        log.debug({ err: error }, 'a look for a late job failed');
      }
      await delay(spread(waitMs), undefined, { signal: stop.signal, ref: false });
    }
  }

  async function end({ caller, promptId }: LivePrompt, { id }: Job): Promise<void> {
    await retry(async () => {
      const ended = await jobs.cancel(caller, id);
      if (!ended.ok && !isGone(ended.error)) return false;
      const facts = { event: 'submission.late_job_cancelled', user: caller.user, promptId };
      log.info({ ...facts, jobId: id }, 'a job turned up after its prompt was ended: cancelled');
      return true;
    });
  }

  async function find(prompt: LivePrompt, plan: Plan): Promise<void> {
    let late: Job | undefined;
    await retry(async () => {
      const seen = await again.look(prompt, plan);
      // Without the label it may be anybody's who runs the same workflow.
      if (typeof seen === 'object' && seen.metadata?.[KEY_LABEL] === plan.label) late = seen;
      return seen === 'none' || late !== undefined;
    });
    if (late) await end(prompt, late);
  }

  return {
    watch(prompt, plan, found) {
      const task = (found ? end(prompt, found) : find(prompt, plan))
        .catch((error: unknown) => {
          if (!stop.signal.aborted) log.error({ err: error }, 'looking for a late job failed');
        })
        .finally(() => tasks.delete(task));
      tasks.add(task);
    },
    async close() {
      stop.abort();
      await Promise.all(tasks);
    },
  };
}
