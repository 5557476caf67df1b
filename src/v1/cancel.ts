import type { Ledger } from '../ledger/ledger.ts';
import type { LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import type { Outbox } from './outbox.ts';
import type { Pursuit } from './pursuit.ts';

/** Asks for the end of prompts, wherever they are; their followers tell what really happened. */
export type Cancel = (prompts: readonly LivePrompt[]) => Promise<void>;

export function createCancel(deps: {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly outbox: Outbox;
  readonly follower: Follower;
  readonly pursuit: Pursuit;
  readonly now: () => number;
}): Cancel {
  const { ledger, outbox, follower, pursuit, now } = deps;

  async function one(prompt: LivePrompt): Promise<void> {
    prompt.cancelAsked = true;
    await ledger.prompts.askCancel(prompt.key, now());
    if (outbox.withdraw(prompt)) return follower.settle(prompt, { kind: 'canceled' });
    // Without a job it is on its way, or looked for: whoever finds the job sees what was asked.
    await pursuit.pursue(prompt);
  }

  return async (prompts) => {
    await Promise.all(prompts.map(one));
  };
}
