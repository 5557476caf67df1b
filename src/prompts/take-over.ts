import { createLazyJson } from '../lib/lazy-json.ts';
import type { PromptRow } from '../ledger/ledger.ts';
import { type JsonObject, parseJson } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import type { LivePrompt, NewLivePrompt } from './live-prompt.ts';
import { ByUser } from '../sockets/by-user.ts';
import { type LogHandlers, type UserLogs, LeadershipLost } from './prompt-event-log.ts';
import type { PromptPorts } from './ports.ts';
import { readLinkedJob } from './state/linked-job.ts';
import { byQueueOrder } from './queue-order.ts';
import { isSubmittedThroughV1, needsOwnSecrets } from './submit/plan.ts';
import { type NextStep, type PromptParts, takeOverPrompt } from './take-over-prompt.ts';

type PromptStep = { readonly prompt: LivePrompt; readonly run: NextStep };

/**
 * Takes over the prompts of processes that have ended. Prompts with a job are followed again. Prompts
 * without one are submitted under the same idempotency key, or their job is searched for.
 */
export class PromptTakeover {
  readonly #ports: PromptPorts;
  readonly #parts: PromptParts;
  /** Keys of prompts without a leader that wait for a call of their user. */
  readonly #awaitingCaller = new ByUser<string>();
  readonly #withoutCredential = new ByUser<LivePrompt>();
  readonly #takingOver = new Map<string, Promise<void>>();

  constructor(ports: PromptPorts, parts: PromptParts) {
    this.#ports = ports;
    this.#parts = parts;
  }

  /**
   * Shows the live prompts of followed users, and takes over those without a leader.
   * `cancelRequested`: called when another process has recorded a cancel request.
   */
  async start(cancelRequested: (key: string) => void): Promise<void> {
    const { prompts, eventLog } = this.#ports.records;
    const { hub, log } = this.#ports.frames;
    this.#ports.jobs.keyring.onCaller(({ user }) => this.#takeOverOfUser(user));
    const rows = await prompts.live();
    for (const row of rows) if (eventLog.isFollowed(row.user)) this.#track(row);
    const handlers: LogHandlers = {
      takeOverVacant: (keys) => this.#takeOverAllVacant(keys),
      discover: (key) => this.discover(key),
      trackUser: (user, logs) => this.#trackUser(user, logs),
      liveKeys: (user) => prompts.liveKeys(user),
      forgetUser: (user) => {
        this.#withoutCredential.take(user);
        this.#parts.follower.forgetUser(user);
      },
      endOf: (key) => this.#endOf(key),
      cancelRequested,
      resultFetched: (user, id) => void hub.channels.discardFetched(user, [id]),
    };
    await eventLog.start(handlers, rows);
    if (rows.length === 0) return;
    const waiting = [...this.#awaitingCaller.users()].length;
    log.info({ event: 'prompt.resumed', prompts: rows.length, waiting }, 'took over live prompts');
  }

  /** Resolves when the prompts that waited for a call of this user are taken over. */
  async whenTakenOver(user: string): Promise<void> {
    await this.#takingOver.get(user);
  }

  /**
   * Shows a prompt of another process, also one that has ended since its entries were received:
   * sockets here get its frames all the same.
   */
  async discover(key: string): Promise<void> {
    if (this.#parts.follower.find(key)) return;
    const row = await this.#ports.records.prompts.get(key);
    if (row) this.#track(row);
  }

  /** Shows the prompts of a user, oldest first: a prompt supersedes those before it. */
  async #trackUser(user: string, { endedKeys, withEntries }: UserLogs): Promise<void> {
    const { prompts } = this.#ports.records;
    const ended = await Promise.all(endedKeys.map((key) => prompts.get(key)));
    const live = await prompts.live(user);
    const rows = [...ended, ...live].flatMap((row) => row ?? []);
    const shown = new Set(await withEntries(rows.map(({ key }) => key)));
    for (const row of rows) if (shown.has(row.key)) this.#track(row);
  }

  #track(row: PromptRow): LivePrompt {
    const caller = this.#ports.jobs.keyring.callerOf(row.user);
    const prompt = this.#parts.follower.trackPrompt(toNewLivePrompt(row), caller);
    prompt.cancelRequested ||= row.cancelAskedAtMs !== null;
    readLinkedJob(this.#ports.frames.livePrompts, prompt, row);
    if (!this.#canProceed(row)) this.#withoutCredential.add(row.user, prompt);
    return prompt;
  }

  /** False for a prompt that needs the credential of its user, which no call has brought yet. */
  #canProceed(row: PromptRow): boolean {
    const { keyring, needsCredential } = this.#ports.jobs;
    if (!needsOwnSecrets(row) && !needsCredential(row.user)) return true;
    return keyring.callerOf(row.user).credential !== undefined;
  }

  /** Takes over prompts. `keys`: all prompts without a leader. */
  async #takeOverAllVacant(keys: readonly string[]): Promise<void> {
    this.#awaitingCaller.retain(new Set(keys));
    const awaiting = new Set(this.#awaitingCaller.all());
    await this.#takeOverVacant(keys.filter((key) => !awaiting.has(key)));
  }

  async #takeOverVacant(keys: readonly string[]): Promise<void> {
    const steps: PromptStep[] = [];
    for (const key of keys) {
      const step = await this.#orStopLeading(key, () => this.#takeOver(key));
      if (step) steps.push(step);
    }
    // Taken over together: a submission must not be sent before an earlier one is in the outbox
    // again.
    await Promise.all(
      steps
        .toSorted((one, other) => byQueueOrder(one.prompt, other.prompt))
        .map(({ prompt, run }) => this.#orStopLeading(prompt.key, run)),
    );
  }

  async #orStopLeading<T>(key: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof LeadershipLost) return undefined;
      const facts = { event: 'prompt.takeover_failed', err: error };
      this.#ports.frames.log.error(facts, 'could not take over a prompt');
      this.#ports.records.eventLog.stopLeading(key);
      return undefined;
    }
  }

  /** Takes over a prompt without a leader. Returns the step that follows. */
  async #takeOver(key: string): Promise<PromptStep | undefined> {
    const { follower } = this.#parts;
    const { prompts, eventLog } = this.#ports.records;
    const row = await prompts.get(key);
    const known = follower.find(key);
    if (!known && (!row || row.state === 'done')) return this.#discardLeftover(key, row);
    if (known) known.isTakenOver = true;
    const user = known?.caller.user ?? row?.user ?? '';
    if (row && !this.#canProceed(row)) {
      this.#awaitingCaller.add(user, key);
      if (known) this.#ports.frames.livePrompts.awaitCredential(known);
      return undefined;
    }
    // Earlier prompts of the user may wait in the outbox of another process.
    await eventLog.followUser(user);
    const prompt = follower.find(key) ?? (row && this.#track(row));
    if (!prompt || !(await eventLog.takeOver({ key, user }))) return undefined;
    prompt.isTakenOver = true;
    prompt.caller = this.#ports.jobs.keyring.callerOf(user);
    const run = await takeOverPrompt(this.#ports, this.#parts, prompt);
    return run && { prompt, run };
  }

  /**
   * Removes the log of a prompt whose process died before the ledger had it, or after its history
   * was written.
   */
  async #discardLeftover(key: string, row: PromptRow | undefined): Promise<undefined> {
    const { eventLog } = this.#ports.records;
    if (!(await eventLog.takeOver({ key, user: row?.user ?? '' }))) return undefined;
    if (row) await eventLog.append(key, { kind: 'recorded' });
    else await eventLog.discard(key);
    return undefined;
  }

  #takeOverOfUser(user: string): void {
    const { jobs, frames } = this.#ports;
    for (const prompt of this.#withoutCredential.take(user))
      prompt.caller = jobs.keyring.callerOf(user);
    const keys = [...this.#awaitingCaller.take(user)];
    if (keys.length === 0) return;
    const task = this.#takeOverVacant(keys)
      .catch((error: unknown) =>
        frames.log.error(
          { event: 'prompt.resume_failed', err: error, user },
          'could not take over prompts',
        ),
      )
      .finally(() => this.#takingOver.delete(user));
    this.#takingOver.set(user, task);
  }

  async #endOf(key: string): Promise<'recorded' | 'removed' | 'none'> {
    const row = await this.#ports.records.prompts.get(key);
    if (!row) return 'removed';
    return row.state === 'done' ? 'recorded' : 'none';
  }
}

function toNewLivePrompt(row: PromptRow): NewLivePrompt {
  const { key, promptId, number, clientId, createdAtMs } = row;
  return {
    key,
    promptId,
    number,
    clientId,
    createdAtMs,
    lazy: {
      graph: createLazyJson<Graph>(undefined, row.graphJson),
      extraData: createLazyJson<JsonObject>(undefined, row.extraDataJson),
    },
    targets: parseJson(row.targetsJson) as readonly string[],
    isV2Job: !isSubmittedThroughV1(row),
  };
}
