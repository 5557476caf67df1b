import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type JobApi, type V2Error, isAboutContent } from '../wire/jobs.ts';
import type { Job } from '../wire/v2.ts';
import type { LivePrompt } from './board.ts';
import { KEY_LABEL, type Plan, workflowOf } from './plan.ts';
import type { Sender, Sent } from './send.ts';
import type { Unseen } from './submission-fate.ts';

/**
 * The job, or why there is none.
 * @internal
 */
export type Sight = Job | Unseen;

/** `later`: the answer says nothing of what was sent before. */
export type Repeated = Sent | { readonly kind: 'later'; readonly error: V2Error };

/** What to do with a submission that may have made a job before. */
export type Again = {
  /** Looks once for its job. */
  look(prompt: LivePrompt, plan: Plan): Promise<Sight>;
  /** Sends it once more, under the key it had and no other, after a look that found no job. */
  send(prompt: LivePrompt, plan: Plan, seen: Unseen): Promise<Repeated>;
};

type Deps = {
  readonly jobs: Pick<JobApi, 'recover'>;
  readonly ledger: Ledger;
  readonly sender: Sender;
  readonly log: Logger;
  readonly now: () => number;
};

/** Keys live for a day upstream; sent again later, one could make a second job. */
const KEY_LIFE_MS = 20 * 60 * 60_000;
/** Of services without a job list. */
const NO_LIST = new Set([404, 405, 501]);

export function createAgain({ jobs, ledger, sender, log, now }: Deps): Again {
  return {
    async look(prompt, plan) {
      const found = await jobs.recover(prompt.caller, {
        workflow: workflowOf(plan),
        metadata: { [KEY_LABEL]: plan.label },
        extraData: plan.secrets,
        sentAtMs: prompt.createdAtMs,
        isTaken: (jobId) => ledger.prompts.hasJob(jobId),
      });
      if (!found.ok && found.error.engineDown) return 'engine down';
      if (!found.ok) return NO_LIST.has(found.error.status) ? 'not seen' : 'blind';
      if (found.value.job) return found.value.job;
      log.debug({ promptId: prompt.promptId }, 'no job of this prompt is to be seen');
      if (found.value.isCertain) return 'none';
      return found.value.isListed ? 'not listed' : 'not seen';
    },
    async send(prompt, plan, seen) {
      // Whoever asked for its end does not want it sent once more.
      if (prompt.cancelAsked || now() - prompt.createdAtMs > KEY_LIFE_MS) {
        return { kind: 'unknown', plan, error: NOT_SENT, isKeyUsed: true };
      }
      if (seen === 'none') return sender.send(prompt.caller, plan);
      const sent = await sender.repeat(prompt.caller, plan);
      if (sent.kind !== 'refused') return sent;
      // Keys are looked at last: a job may be there all the same.
      const couldLook = seen === 'not seen' || seen === 'not listed';
      const isFinal = isAboutContent(sent.error) && couldLook;
      return isFinal ? sent : { kind: 'later', error: sent.error };
    },
  };
}

const NOT_SENT: V2Error = {
  status: 500,
  code: 'submit_outcome_unknown',
  message: 'Whether the job service took it is being found out.',
  details: null,
};
