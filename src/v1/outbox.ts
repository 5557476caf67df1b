import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../ledger/ledger.ts';
import { rejectionOf } from '../translate/rejection.ts';
import type { Logger } from '../telemetry.ts';
import type { Birth } from './birth.ts';
import type { Board, LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import { type Pace, spread, waitMsOf } from './pace.ts';
import { type Plan, intentOf } from './plan.ts';
import { LeadLost, type PromptJournal } from './prompt-journal.ts';
import type { Reconciler, ReconcilerDeps } from './reconciler.ts';
import type { Again, Repeated } from './again.ts';
import type { Sender, Sent } from './send.ts';
import { byTurn } from './turn.ts';

/** A prompt that waits for the upstream to have room; its intent is in the ledger. */
type Letter = {
  readonly prompt: LivePrompt;
  readonly plan: Plan;
  /** `unheard`: the process died before its client heard of it. */
  readonly told: 'accepted' | 'unheard';
  /** An earlier process may have sent it, nobody knows with what outcome. */
  readonly isInDoubt: boolean;
};

/** Somebody's place in the outbox until the letter is put there, or is not to come after all. */
export type Place = { leave(): void };

/** Accepted prompts without a job, submitted one after the other as soon as the upstream admits them. */
export type Outbox = {
  /** Whether somebody of this user waits already: who comes later has to wait, too. */
  isBusy(user: string): boolean;
  /** Keeps a place free for a letter of this user; `undefined`: there is none. */
  place(user: string): Place | undefined;
  /** Letters of all users. */
  depth(): number;
  /** Resolves when it is known everywhere. */
  put(letter: Letter, waitMs?: number): Promise<void>;
  /** Takes a waiting prompt out; false when it is not there, or may be on its way upstream. */
  withdraw(prompt: LivePrompt): boolean;
  close(): Promise<void>;
};

type Deps = Pick<ReconcilerDeps, 'forget'> & {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly again: Again;
  readonly board: Board;
  readonly journal: Pick<PromptJournal, 'leads'>;
  readonly follower: Follower;
  readonly sender: Sender;
  readonly birth: Birth;
  readonly reconciler: Reconciler;
  readonly pace: Pace;
  readonly log: Logger;
  /** Letters of one user. */
  readonly limit: number;
};

type Queue = { letters: Letter[]; sending: Letter | undefined };

/** Until it is looked again whether letters of other processes are gone. */
const TURN_MS = 100;

export function createOutbox(deps: Deps): Outbox {
  const { ledger, board, journal, follower, sender, again, birth, reconciler, pace, log } = deps;
  const stop = new AbortController();
  const queues = new Map<string, Queue>();
  const pumps = new Set<Promise<void>>();
  const places = new Map<string, Set<Place>>();

  async function pump(user: string, queue: Queue, firstWaitMs: number): Promise<void> {
    let unsent = 0;
    for (let waitMs = firstWaitMs; ;) {
      if (waitMs > 0) await delay(spread(waitMs), undefined, { signal: stop.signal, ref: false });
      const letter = queue.letters[0];
      if (letter === undefined) break;
      if (!isNext(letter, queue)) {
        if (!journal.leads(letter.prompt.key)) remove(queue, letter);
        waitMs = TURN_MS;
        continue;
      }
      queue.sending = letter;
      const sent = await attempt(letter);
      queue.sending = undefined;
      unsent = sent?.kind === 'unsent' ? unsent + 1 : 0;
      waitMs = await outcome(letter, sent, unsent).catch((cause) => broken(letter, cause));
      if (waitMs === 0) remove(queue, letter);
      else if (sent?.kind === 'unsent') replan(queue, letter, sent.plan);
    }
    queues.delete(user);
  }

  /** Letters of the same user that lie in other processes have their turn, too. */
  function isNext({ prompt }: Letter, { letters }: Queue): boolean {
    if (!journal.leads(prompt.key)) return false;
    const ours = new Set(letters.map((letter) => letter.prompt));
    const others = [...board.waiting(prompt.caller.user)].filter((other) => !ours.has(other));
    return others.every((other) => byTurn(prompt, other) < 0);
  }

  /** `undefined`: something of our own broke, or it is another process's; there may be a job. */
  async function attempt(letter: Letter): Promise<Repeated | undefined> {
    const { prompt, plan, isInDoubt } = letter;
    try {
      if (isInDoubt) return await attemptAgain(letter);
      await ledger.prompts.setIntent(plan.label, intentOf(plan, 'away'));
      const sent = await sender.send(prompt.caller, plan);
      const isBack = sent.kind === 'crowded' || sent.kind === 'unsent' || isPassing(sent);
      const left = sent.kind === 'unsent' ? sent.plan : plan;
      if (isBack) await ledger.prompts.setIntent(plan.label, intentOf(left, 'here'));
      return sent;
    } catch (error) {
      const { promptId, caller } = prompt;
      const facts = { err: error, user: caller.user, promptId };
      if (!(error instanceof LeadLost)) log.error(facts, 'a submission broke off');
      return undefined;
    }
  }

  async function attemptAgain({ prompt, plan }: Letter): Promise<Repeated> {
    const seen = await again.look(prompt, plan);
    if (typeof seen === 'object') return { kind: 'accepted', plan, job: seen, nodeErrors: {} };
    return again.send(prompt, plan, seen);
  }

  /** How long to wait before the same letter is sent again; 0: it is dealt with. */
  async function outcome(
    letter: Letter,
    sent: Repeated | undefined,
    unsent: number,
  ): Promise<number> {
    const { prompt, plan, told, isInDoubt } = letter;
    if (sent?.kind === 'accepted') {
      await birth(prompt, sent.plan, sent.job);
      return 0;
    }
    const isWithUs = !isInDoubt && (sent?.kind === 'crowded' || sent?.kind === 'unsent');
    if (prompt.cancelAsked && isWithUs) {
      void follower.settle(prompt, { kind: 'canceled' });
      return 0;
    }
    if (sent?.kind === 'crowded') return waitMsOf(pace, sent.error);
    if (sent?.kind === 'unsent')
      return Math.min(pace.retryMs.last, pace.retryMs.first * 2 ** Math.min(unsent, 10));
    if (sent?.kind === 'later' || isPassing(sent)) return pace.retryMs.last;
    if (sent?.kind === 'refused') return refused(letter, sent);
    const isKeyUsed = sent?.isKeyUsed ?? false;
    const isEngineDown = sent?.error.engineDown === true;
    reconciler.take({ prompt, plan: sent?.plan ?? plan, told, isKeyUsed, isEngineDown });
    return 0;
  }

  /** Its outcome could not be written down: it is looked for, and those behind it go on. */
  function broken(letter: Letter, cause: unknown): number {
    if (cause instanceof LeadLost) return 0;
    const { prompt, plan, told } = letter;
    log.error({ err: cause, promptId: prompt.promptId }, 'a submission could not be written down');
    reconciler.take({ prompt, plan, told, isKeyUsed: false });
    return 0;
  }

  async function refused(
    { prompt, told }: Letter,
    { error, refusal, plan }: Sent & { kind: 'refused' },
  ): Promise<number> {
    if (told === 'unheard') await deps.forget(prompt);
    else {
      const failure = rejectionOf(error, refusal, plan.graph);
      void follower.settle(prompt, { kind: 'failed', error: failure });
    }
    return 0;
  }

  /** The key it had may be used up. */
  function replan(queue: Queue, letter: Letter, plan: Plan): void {
    const next = { ...letter, plan };
    queue.letters = queue.letters.map((other) => (other === letter ? next : other));
  }

  function remove(queue: Queue, letter: Letter): void {
    queue.letters = queue.letters.filter((other) => other !== letter);
    // Where another process's letters are is for that one to say.
    if (journal.leads(letter.prompt.key)) board.unpost(letter.prompt);
  }

  /** Here and, as far as their letters came later, in other processes. */
  function count(user: string): number {
    return Math.max(queues.get(user)?.letters.length ?? 0, board.waiting(user).size);
  }

  function start(user: string, waitMs: number): Queue {
    const queue: Queue = { letters: [], sending: undefined };
    queues.set(user, queue);
    const task = Promise.resolve()
      .then(() => pump(user, queue, waitMs))
      .catch((error: unknown) => {
        if (!stop.signal.aborted) log.error({ err: error }, 'the outbox stopped');
      })
      .finally(() => pumps.delete(task));
    pumps.add(task);
    return queue;
  }

  return {
    isBusy: (user) => count(user) > 0,
    depth: () => [...queues.values()].reduce((sum, { letters }) => sum + letters.length, 0),
    place(user) {
      const kept = places.get(user) ?? new Set();
      if (count(user) + kept.size >= deps.limit) return undefined;
      const place: Place = {
        leave() {
          if (kept.delete(place) && kept.size === 0) places.delete(user);
        },
      };
      places.set(user, kept.add(place));
      return place;
    },
    async put(letter, waitMs = 0) {
      const { user } = letter.prompt.caller;
      const queue = queues.get(user) ?? start(user, waitMs);
      queue.letters = [...queue.letters, letter].toSorted((a, b) => byTurn(a.prompt, b.prompt));
      await follower.note(letter.prompt, 'waits');
    },
    withdraw(prompt) {
      const queue = queues.get(prompt.caller.user);
      const letter = queue?.letters.find((waiting) => waiting.prompt === prompt);
      if (!queue || !letter || queue.sending === letter) return false;
      remove(queue, letter);
      if (!letter.isInDoubt) return true;
      reconciler.take({ ...letter, isKeyUsed: true });
      return false;
    },
    async close() {
      stop.abort();
      await Promise.all(pumps);
    },
  };
}

/**
 * A key that is refused today may be good tomorrow, and a page in place of an answer is somebody's in
 * between: what was accepted is not dropped for either.
 */
function isPassing(sent: Repeated | undefined): boolean {
  if (sent?.kind !== 'refused') return false;
  return sent.error.status === 401 || sent.error.code === 'bad_upstream_response';
}
