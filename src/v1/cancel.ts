import { steadyNow } from '../lib/steady-clock.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { reached } from '../crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Caller } from '../wire/jobs.ts';
import { type Board, type LivePrompt, isOver } from './board.ts';
import type { Follower } from './follower.ts';
import type { Outbox } from './outbox.ts';
import type { PromptJournal } from './prompt-journal.ts';
import type { Pursuit } from './pursuit.ts';
import type { Reconciler } from './reconciler.ts';

/** Asks for the end of prompts, wherever they are; their followers tell what really happened. */
export type Cancel = {
  readonly cancel: (prompts: readonly LivePrompt[], caller: Caller) => Promise<void>;
  /** Another process was asked, and has written it down; this one may look after the prompt. */
  readonly cancelAsked: (key: string) => void;
};

type Deps = {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly journal: Pick<PromptJournal, 'leads' | 'askCancel'>;
  readonly board: Board;
  readonly outbox: Outbox;
  readonly reconciler: Pick<Reconciler, 'withdraw'>;
  readonly follower: Follower;
  readonly pursuit: Pursuit;
  readonly now: () => number;
};

/** How long an answer waits for another process to take a prompt out of its outbox. */
const ELSEWHERE_MS = { every: 10, most: 2000 } as const;
/** And for the history of what the service says is over: v1 has removed it when it answers. */
const GONE_MS = { every: 10, most: 2000 } as const;

export function createCancel(deps: Deps): Cancel {
  const { ledger, journal, board, outbox, reconciler, follower, pursuit, now } = deps;

  async function one(prompt: LivePrompt, caller: Caller): Promise<void> {
    prompt.cancelAsked = true;
    await ledger.prompts.askCancel(prompt.key, now());
    reached('after-cancel-asked');
    return journal.leads(prompt.key) ? here(prompt, caller) : elsewhere(prompt, caller);
  }

  async function here(prompt: LivePrompt, caller: Caller): Promise<void> {
    if (outbox.withdraw(prompt)) return follower.settle(prompt, { kind: 'canceled' });
    if (await reconciler.withdraw(prompt)) return;
    // Without a job it is on its way: the process that learns of the job sees what was asked.
    await pursuit.pursue(prompt, caller);
  }

  /** Without a job, only who looks after it can do something; with one, everybody can ask for it. */
  async function elsewhere(prompt: LivePrompt, caller: Caller): Promise<void> {
    journal.askCancel(prompt.key);
    const deadlineMs = steadyNow() + ELSEWHERE_MS.most;
    while (prompt.waits && board.has(prompt) && steadyNow() < deadlineMs)
      await delay(ELSEWHERE_MS.every);
    await pursuit.pursue(prompt, caller);
  }

  /** What runs on for a while does so in v1, too. */
  async function gone(prompts: readonly LivePrompt[]): Promise<void> {
    const deadlineMs = steadyNow() + GONE_MS.most;
    const over = prompts.filter(isOver);
    while (over.some((prompt) => board.has(prompt)) && steadyNow() < deadlineMs)
      await delay(GONE_MS.every);
  }

  return {
    async cancel(prompts, caller) {
      await Promise.all(prompts.map((prompt) => one(prompt, caller)));
      await gone(prompts);
    },
    cancelAsked(key) {
      const prompt = follower.find(key);
      if (!prompt) return;
      prompt.cancelAsked = true;
      if (!journal.leads(key)) return;
      // A service may answer that the job is over and say so on no stream: the process that follows it asks.
      void here(prompt, prompt.caller);
    },
  };
}
