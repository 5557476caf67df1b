import { setTimeout as delay } from 'node:timers/promises';
import { rejectionOf } from '../translate/rejection.ts';
import type { Logger } from '../telemetry.ts';
import type { Job } from '../wire/v2.ts';
import type { Birth } from './birth.ts';
import type { LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import type { Forget } from './forget.ts';
import { type Pace, spread } from './pace.ts';
import type { Plan } from './plan.ts';
import { LeadLost, type PromptJournal } from './prompt-journal.ts';
import type { Again, Sight } from './again.ts';

/** A prompt whose submission may or may not have made a job. */
export type Doubt = {
  readonly prompt: LivePrompt;
  readonly plan: Plan;
  /**
   * `accepted`: the client was told it will run, so its key is sent again until that is answered.
   * `unknown`: it was told that nobody knows; `unheard`: it was told nothing, the process died.
   */
  readonly told: 'accepted' | 'unknown' | 'unheard';
  /**
   * The key is not to be sent again: an attempt reached submission for certain, its client wants
   * its end, or the secrets it came with are gone.
   */
  readonly isKeyUsed: boolean;
};

/** Looks for the jobs of such prompts until they are found or given up. */
export type Reconciler = {
  take(doubt: Doubt): void;
  close(): Promise<void>;
};

export type ReconcilerDeps = {
  readonly again: Again;
  readonly follower: Follower;
  readonly birth: Birth;
  readonly journal: Pick<PromptJournal, 'leads'>;
  readonly forget: Forget;
  readonly pace: Pace;
  readonly log: Logger;
  readonly now: () => number;
};

/** `hopelessSinceMs`: since when it is only looked for, and not sent again. */
type Search = { readonly doubt: Doubt; hopelessSinceMs: number | undefined };

type Next = 'again' | 'over' | 'key used';
type Unseen = Exclude<Sight, Job>;

export function createReconciler(deps: ReconcilerDeps): Reconciler {
  const { again, follower, journal, birth, pace, log, now } = deps;
  const stop = new AbortController();
  const tasks = new Set<Promise<void>>();

  /** Nothing can come of a key that was used up; any other may be sent again, and only it. */
  async function resendOnce({ prompt, plan }: Doubt, seen: Unseen): Promise<Next> {
    const sent = await again.send(prompt, plan, seen);
    if (sent.kind === 'unknown') return sent.isKeyUsed ? 'key used' : 'again';
    if (sent.kind === 'accepted') await birth(prompt, sent.plan, sent.job);
    if (sent.kind === 'refused') {
      const error = rejectionOf(sent.error, sent.refusal, plan.graph);
      await follower.settle(prompt, { kind: 'failed', error });
    }
    return sent.kind === 'accepted' || sent.kind === 'refused' ? 'over' : 'again';
  }

  async function giveUp({ prompt, told }: Doubt, reason: string): Promise<void> {
    if (told === 'unheard' && reason === NEVER_MADE) return deps.forget(prompt);
    if (prompt.cancelAsked) return follower.settle(prompt, { kind: 'canceled' });
    log.warn(
      { user: prompt.caller.user, promptId: prompt.promptId, reason },
      'a submission is given up',
    );
    await follower.settle(prompt, { kind: 'lost', reason });
  }

  /** One look and what follows from it; true when the prompt's fate is certain. */
  async function lookOnce(search: Search): Promise<boolean> {
    const { doubt, hopelessSinceMs } = search;
    const found = await again.look(doubt.prompt, doubt.plan);
    if (typeof found === 'object') {
      await birth(doubt.prompt, doubt.plan, found);
      return true;
    }
    const isAccepted = doubt.told === 'accepted' && hopelessSinceMs === undefined;
    if (found === 'none' && !isAccepted) {
      await giveUp(doubt, NEVER_MADE);
      return true;
    }
    if (hopelessSinceMs === undefined) {
      const resent = await resendOnce(doubt, found);
      if (resent === 'key used') search.hopelessSinceMs = now();
      return resent === 'over';
    }
    if (now() - hopelessSinceMs <= pace.searchWindowMs) return false;
    await giveUp(doubt, UNKNOWN);
    return true;
  }

  /** A ledger that is away now may be back later. */
  async function tryOnce(search: Search): Promise<boolean> {
    try {
      return await lookOnce(search);
    } catch (error) {
      if (stop.signal.aborted || error instanceof LeadLost) throw error;
      const { promptId } = search.doubt.prompt;
      log.error({ err: error, promptId }, 'looking for a lost submission failed, trying again');
      return false;
    }
  }

  async function search(doubt: Doubt): Promise<void> {
    const { first, last } = pace.searchMs;
    const isHopeless = doubt.isKeyUsed || doubt.told === 'unknown';
    const state: Search = { doubt, hopelessSinceMs: isHopeless ? now() : undefined };
    for (let waitMs = first; ; waitMs = Math.min(last, waitMs * 1.5)) {
      if (!journal.leads(doubt.prompt.key) || (await tryOnce(state))) return;
      await delay(spread(waitMs), undefined, { signal: stop.signal, ref: false });
    }
  }

  return {
    take(doubt) {
      const task = follower
        .note(doubt.prompt, 'sought')
        .then(() => search(doubt))
        .catch((error: unknown) => {
          if (stop.signal.aborted || error instanceof LeadLost) return;
          log.error({ err: error }, 'a lost submission stays lost');
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

const NEVER_MADE = 'the job service never took it';
const UNKNOWN = 'whether the job service took it could not be found out';
