import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../ledger/ledger.ts';
import { rejectionOf } from '../translate/rejection.ts';
import type { Logger } from '../telemetry.ts';
import type { Job } from '../wire/v2.ts';
import type { Birth } from './birth.ts';
import type { LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import type { Forget } from './forget.ts';
import type { LateJobs } from './late-jobs.ts';
import { type Pace, spread } from './pace.ts';
import { type Plan, intentOf, sentAgain } from './plan.ts';
import { LeadLost, type PromptJournal } from './prompt-journal.ts';
import type { Again } from './again.ts';
import { type Act, type Told, type Unseen, fateOf } from './submission-fate.ts';

/**
 * A prompt whose submission may or may not have made a job.
 * @internal
 */
export type Doubt = {
  readonly prompt: LivePrompt;
  readonly plan: Plan;
  /**
   * `accepted`: the client was told it will run, so it is sent until it has a job. `unknown`: it was
   * told that its outcome is unknown; `unheard`: it was told nothing, the process died.
   */
  readonly told: Told;
  /**
   * The key is not to be sent again: an attempt reached submission for certain, its client wants
   * its end, or the secrets it came with are gone.
   */
  readonly isKeyUsed: boolean;
  /** Every request was answered: the service could not reach its engine. */
  readonly isEngineDown?: boolean;
};

/** Looks for the jobs of such prompts until they are found or given up. */
export type Reconciler = {
  take(doubt: Doubt): void;
  /** Ends a prompt that is looked for; false: it is not, or its job has just been found. */
  withdraw(prompt: LivePrompt): Promise<boolean>;
  close(): Promise<void>;
};

export type ReconcilerDeps = {
  readonly ledger: { readonly prompts: Pick<Ledger['prompts'], 'setIntent'> };
  readonly again: Again;
  readonly follower: Follower;
  readonly birth: Birth;
  readonly journal: Pick<PromptJournal, 'leads'>;
  readonly forget: Forget;
  readonly lateJobs: Pick<LateJobs, 'watch'>;
  readonly pace: Pace;
  readonly log: Logger;
  readonly now: () => number;
};

type Search = {
  readonly prompt: LivePrompt;
  readonly told: Told;
  plan: Plan;
  isKeyFree: 'yes' | 'no';
  /** Since when it is only looked for. */
  searchedSinceMs: number;
  seen: { readonly what: Unseen; readonly sinceMs: number } | undefined;
  newKeys: number;
  isEngineDown: boolean;
  /** `linking`: its job was found; `ended`: it was withdrawn or given up. */
  state: 'searching' | 'linking' | 'ended';
  readonly wake: AbortController;
};

/** Keys that leave no job again and again are no accident. */
const MAX_NEW_KEYS = 3;

export function createReconciler(deps: ReconcilerDeps): Reconciler {
  const { ledger, again, follower, journal, birth, lateJobs, pace, log, now } = deps;
  const stop = new AbortController();
  const tasks = new Set<Promise<void>>();
  const searches = new Map<LivePrompt, Search>();

  async function link(search: Search, plan: Plan, job: Job): Promise<void> {
    if (search.state === 'ended') return lateJobs.watch(search.prompt, plan, job);
    search.state = 'linking';
    await birth(search.prompt, plan, job);
  }

  /** True: the prompt has its job, or was refused. */
  async function send(search: Search, seen: Unseen): Promise<boolean> {
    const { prompt } = search;
    const sent = await again.send(prompt, search.plan, seen);
    if (sent.kind === 'accepted') await link(search, sent.plan, sent.job);
    if (sent.kind === 'refused' && search.state === 'searching') {
      const error = rejectionOf(sent.error, sent.refusal, search.plan.graph);
      await follower.settle(prompt, { kind: 'failed', error });
    }
    search.isEngineDown = sent.kind === 'unknown' && sent.error.engineDown === true;
    if (sent.kind === 'unknown' && sent.isKeyUsed) {
      search.isKeyFree = 'no';
      search.searchedSinceMs = now();
    }
    if (sent.kind === 'unsent') search.plan = sent.plan;
    return sent.kind === 'accepted' || sent.kind === 'refused';
  }

  /** No job came of the key it had, for certain. */
  async function sendAnew(search: Search): Promise<boolean> {
    if (search.plan.lacksSecrets || search.newKeys++ >= MAX_NEW_KEYS) {
      return giveUp(search, { kind: 'lost', reason: NEVER_MADE });
    }
    const plan = sentAgain(search.plan);
    // A process that goes on after this one must know which key may have made a job.
    await ledger.prompts.setIntent(plan.label, intentOf(plan, 'away'));
    Object.assign(search, { plan, isKeyFree: 'yes', seen: undefined });
    return send(search, 'none');
  }

  async function giveUp(
    search: Search,
    how: { readonly kind: 'lost'; readonly reason: string } | { readonly kind: 'forgotten' },
  ): Promise<true> {
    const { prompt, plan, seen } = search;
    search.state = 'ended';
    if (how.kind === 'forgotten') await deps.forget(prompt);
    else {
      const { caller, promptId } = prompt;
      const facts = { user: caller.user, promptId, reason: how.reason };
      log.warn(facts, 'a submission is given up');
      await follower.settle(prompt, how);
    }
    if (seen?.what !== 'none') lateJobs.watch(prompt, plan);
    return true;
  }

  const acts = {
    wait: async () => false,
    send,
    'send anew': sendAnew,
    forget: (search) => giveUp(search, { kind: 'forgotten' }),
    'not taken': (search) => giveUp(search, { kind: 'lost', reason: NEVER_MADE }),
    'not known': (search) => giveUp(search, { kind: 'lost', reason: UNKNOWN }),
  } as const satisfies Record<Act | 'wait', (search: Search, seen: Unseen) => Promise<boolean>>;

  /** One look and what follows from it; true when the prompt's fate is certain. */
  async function lookOnce(search: Search): Promise<boolean> {
    const looked = await again.look(search.prompt, search.plan);
    const found = looked === 'engine down' && !search.isEngineDown ? 'blind' : looked;
    if (typeof found === 'object') {
      await link(search, search.plan, found);
      return true;
    }
    if (search.state === 'ended') return true;
    const nowMs = now();
    if (search.seen?.what !== found) search.seen = { what: found, sinceMs: nowMs };
    const sameForMs = nowMs - search.seen.sinceMs;
    const searchedForMs = nowMs - search.searchedSinceMs;
    const act = fateOf(pace, { ...search, seen: found, sameForMs, searchedForMs });
    return acts[act](search, found);
  }

  /** A ledger that is away now may be back later. */
  async function tryOnce(search: Search): Promise<boolean> {
    try {
      return await lookOnce(search);
    } catch (error) {
      if (stop.signal.aborted || error instanceof LeadLost) throw error;
      const { promptId } = search.prompt;
      log.error({ err: error, promptId }, 'looking for a lost submission failed, trying again');
      return false;
    }
  }

  async function end(search: Search): Promise<void> {
    search.state = 'ended';
    search.wake.abort();
    lateJobs.watch(search.prompt, search.plan);
    await follower.settle(search.prompt, { kind: 'canceled' });
  }

  async function run(search: Search): Promise<void> {
    const { prompt, wake } = search;
    const { first, last } = pace.searchMs;
    const signal = AbortSignal.any([stop.signal, wake.signal]);
    for (let waitMs = first; ; waitMs = Math.min(last, waitMs * 1.5)) {
      if (search.state === 'ended' || !journal.leads(prompt.key)) return;
      if (prompt.cancelAsked && search.state === 'searching') return end(search);
      if (await tryOnce(search)) return;
      await delay(spread(waitMs), undefined, { signal, ref: false }).catch((error: unknown) => {
        if (!wake.signal.aborted) throw error;
      });
    }
  }

  function searchOf({ prompt, told, plan, isKeyUsed, isEngineDown = false }: Doubt): Search {
    const wake = new AbortController();
    const isKeyFree = isKeyUsed ? 'no' : 'yes';
    const since = { searchedSinceMs: now(), seen: undefined, newKeys: 0, isEngineDown };
    return { prompt, told, plan, isKeyFree, ...since, state: 'searching', wake };
  }

  return {
    take(doubt) {
      const search = searchOf(doubt);
      searches.set(doubt.prompt, search);
      const task = follower
        .note(doubt.prompt, 'sought')
        .then(() => run(search))
        .catch((error: unknown) => {
          if (stop.signal.aborted || error instanceof LeadLost) return;
          log.error({ err: error }, 'a lost submission stays lost');
        })
        .finally(() => {
          tasks.delete(task);
          if (searches.get(doubt.prompt) === search) searches.delete(doubt.prompt);
        });
      tasks.add(task);
    },
    async withdraw(prompt) {
      const search = searches.get(prompt);
      if (search?.state !== 'searching') return false;
      await end(search);
      return true;
    },
    async close() {
      stop.abort();
      await Promise.all(tasks);
    },
  };
}

const NEVER_MADE = 'the job service never took it';
const UNKNOWN = 'whether the job service took it could not be found out';
