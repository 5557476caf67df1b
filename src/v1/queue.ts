import type { BodyReader } from '../http/json-body.ts';
import { isTruthyInPython } from '../protocol/python-text.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';
import { type LivePrompts, hasEnded, shownAsRunning } from '../prompts/live-prompts.ts';
import { isNotStarted } from '../prompts/pending-reason.ts';
import { promptsInQueue } from '../prompts/prompts-in-queue.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { readJson, readJsonOrUndefined, readNamedIds, requireObject } from './routing/body.ts';
import type { Cancel } from '../prompts/cancel.ts';
import { type DialectRules, rulesFor } from '../dialects/dialect.ts';
import { sendEmpty, sendJson, requirePrintable } from '../dialects/errors.ts';
import { byCreation } from '../prompts/queue-order.ts';
import { sendJsonPieces } from '../http/json-stream.ts';
import { toJsonText } from '../lib/lazy-json.ts';
import { routesFor } from './routes.ts';

type QueueServices = {
  readonly livePrompts: LivePrompts;
  readonly ledger: Ledger;
  readonly cancel: Cancel;
  readonly bodies: BodyReader;
  /** Drops the computed results of a user's earlier prompts, where they run in this process. */
  readonly forgetResults?: ((user: string) => void) | undefined;
};

/** `/queue`, `/interrupt` and `/free`: v1's routes for showing and stopping jobs. */
export const queueRoutes = routesFor<QueueServices>({
  async 'GET /queue'(services, { ctx, caller }) {
    const rules = rulesFor(ctx);
    const lists = queueOf(await promptsInQueue(services, caller.user), rules);
    await sendJsonPieces(ctx, queuePieces(lists, rules.queueItem));
  },
  /**
   * Deletes prompts. The hosted service cancels pending and running jobs (spec 3). The original
   * cancels only pending ones: its clients read the queue again and interrupt the prompts that still
   * run.
   */
  async 'POST /queue'(services, { ctx, caller }) {
    const body = requireObject(await readJson(ctx, services.bodies));
    const rules = rulesFor(ctx);
    const inQueue = await promptsInQueue(services, caller.user);
    const { pending } = queueOf(inQueue, rules);
    const isPending = (prompt: LivePrompt) => isNotStarted(prompt) || pending.includes(prompt);
    const cancelsAll = rules.queueDelete === 'pending-and-running';
    const namedIds = new Set([
      ...readNamedIds(body.delete, 'delete'),
      ...readNamedIds(body.cancel, 'cancel'),
    ]);
    const selected = inQueue.filter((prompt) =>
      isNamed(namedIds, prompt)
        ? cancelsAll || isPending(prompt)
        : isTruthyInPython(body.clear) && isPending(prompt),
    );
    const deleted = selected.map(({ promptId }) => promptId);
    ctx.state.promptIds = deleted;
    await services.cancel(selected, caller);
    if (rules.queueAnswer === 'empty') return sendEmpty(ctx);
    sendJson(ctx, { deleted, cleared: isTruthyInPython(body.clear) });
  },
  /**
   * Interrupts a named prompt if it runs, or waits here for its job. Without a name it interrupts the
   * running ones. The answer is always 200, also when idle.
   */
  async 'POST /interrupt'(services, { ctx, caller }) {
    // v1 takes an empty or unreadable body as `{}` here and only here.
    const body = requireObject((await readJsonOrUndefined(ctx, services.bodies)) ?? {});
    const running = services.livePrompts.interruptible(caller.user);
    const interruptible = services.livePrompts
      .list(caller.user)
      .filter((prompt) => prompt.jobId === null || running.includes(prompt));
    if (typeof body.prompt_id === 'string') requirePrintable(body.prompt_id, 'prompt_id');
    const namedIds = new Set([body.prompt_id]);
    const selected = isTruthyInPython(body.prompt_id)
      ? interruptible.filter((prompt) => isNamed(namedIds, prompt))
      : running;
    ctx.state.promptIds = selected.map(({ promptId }) => promptId);
    await services.cancel(selected, caller);
    sendEmpty(ctx);
  },
  /**
   * Frees memory: `free_memory` makes the next prompt compute all nodes anew. There are no models to
   * unload.
   */
  async 'POST /free'(services, { ctx, caller }) {
    const body = requireObject(await readJson(ctx, services.bodies));
    if (isTruthyInPython(body.free_memory)) services.forgetResults?.(caller.user);
    sendEmpty(ctx);
  },
});

type QueueLists = {
  readonly running: readonly LivePrompt[];
  readonly pending: readonly LivePrompt[];
};

/**
 * Returns both lists. Local clients may assert that at most one prompt runs, so further running
 * prompts are the first ones of those that wait.
 */
function queueOf(prompts: readonly LivePrompt[], { queueRunning }: DialectRules): QueueLists {
  const runningPrompts = shownAsRunning(prompts);
  const running =
    queueRunning === 'one' ? runningPrompts.toSorted(byStart).slice(0, 1) : runningPrompts;
  const waiting = prompts.filter((prompt) => !runningPrompts.includes(prompt) && !hasEnded(prompt));
  return {
    running,
    pending: [...runningPrompts.filter((one) => !running.includes(one)), ...waiting],
  };
}

function byStart(a: LivePrompt, b: LivePrompt): number {
  return (a.startedAtMs ?? Infinity) - (b.startedAtMs ?? Infinity) || byCreation(a, b);
}

type ItemForm = DialectRules['queueItem'];

function* queuePieces(
  { running, pending }: QueueLists,
  form: ItemForm,
): Generator<string, undefined> {
  yield '{"queue_running":[';
  yield* itemPieces(running, form);
  yield '],"queue_pending":[';
  yield* itemPieces(pending, form);
  yield ']}';
}

/** Yields v1's 5-tuples, joined from texts: clients poll thousands of them. */
function* itemPieces(prompts: readonly LivePrompt[], form: ItemForm): Generator<string, undefined> {
  let position = 0;
  for (const prompt of prompts) {
    position++;
    yield `${position === 1 ? '' : ','}[${memberTexts(prompt, position, form).join(',')}]`;
  }
}

function memberTexts(prompt: LivePrompt, position: number, form: ItemForm): readonly string[] {
  const { number, lazy, createdAtMs } = prompt;
  const [id, targets] = [JSON.stringify(prompt.promptId), JSON.stringify(prompt.targets)];
  const graph = toJsonText(lazy.graph);
  if (form === 'as-submitted')
    return [String(number), id, graph, toJsonText(lazy.extraData), targets];
  // The hosted service gives the place in its list, and the time instead of `extra_data`.
  return [String(position), id, graph, targets, JSON.stringify({ create_time: createdAtMs })];
}

function isNamed(ids: ReadonlySet<unknown>, { promptId, jobId }: LivePrompt): boolean {
  return ids.has(promptId) || (jobId !== null && ids.has(jobId));
}
