import { IS_TERMINAL, type JobStatus } from '../../protocol/v2.ts';
import type { ReceiverGroup } from '../../sockets/delivery.ts';
import { NOTIFICATION_TEXTS } from '../../translate/notification-texts.ts';
import {
  type ProgressEffect,
  type ProgressInput,
  type ProgressState,
  initialProgress,
} from '../../translate/progress/progress-state.ts';
import { idleDueMs, reduceProgress } from '../../translate/progress/progress.ts';
import type { LivePrompt } from '../live-prompt.ts';
import { type WaitReason, pendingRow } from '../pending-reason.ts';
import type { PromptPorts } from '../ports.ts';
import type { PromptLogEntry } from '../prompt-event-log.ts';
import { readLinkedJob } from '../state/linked-job.ts';
import { FrameSender } from './send-frames.ts';

type EndEffect = ProgressEffect & { kind: 'end' };

/**
 * Third stage of the progress pipeline: applies the log entries of one prompt. Reduces inputs to
 * frames, and updates what the queue shows.
 */
export class EntryApplier {
  readonly #prompt: LivePrompt;
  readonly #ports: PromptPorts;
  readonly #frameSender: FrameSender;
  readonly #receivedUpTo: Record<ReceiverGroup, number> = { client: 0, hosted: 0 };
  /** The position of the entry that is being applied, if that takes time. */
  #applying: number | undefined;
  /** True when the prompt had a job and waits to be sent again. */
  #hadJob = false;
  /** True when the job of the prompt did not begin at once. */
  #isInQueue = false;
  #endEffect: EndEffect | undefined;

  constructor(prompt: LivePrompt, ports: PromptPorts) {
    this.#prompt = prompt;
    this.#ports = ports;
    this.#frameSender = new FrameSender(prompt, ports);
  }

  /** Applies the entry at this position of the log. */
  async apply(entry: PromptLogEntry, position: number): Promise<void> {
    this.#applying = position;
    await this.#applyEntry(entry, position).finally(() => (this.#applying = undefined));
    this.#markReached(position);
  }

  /**
   * Returns the last position whose frames a socket has completely, when it got frames up to
   * `position`: frames of an entry that is still being applied are not complete.
   */
  completeUpTo(position: number): number {
    return Math.min(position, (this.#applying ?? Infinity) - 1);
  }

  /** Returns the state of the progress. Before the first input the graph is not final yet. */
  state(): ProgressState {
    const { promptId, progress } = this.#prompt;
    return progress ?? initialProgress(promptId, this.#prompt.graph);
  }

  /** When an `idle` input is due; `null`: no such input is due. */
  nextDueMs(): number | null {
    const { progress } = this.#prompt;
    return progress === undefined ? null : idleDueMs(progress);
  }

  async #applyEntry(entry: PromptLogEntry, position: number): Promise<void> {
    const { livePrompts, hub, spans } = this.#ports.frames;
    const prompt = this.#prompt;
    switch (entry.kind) {
      case 'input':
        return this.#applyInput(entry.input, position);
      case 'waits':
        // Where this process sends the prompt again, its job is already cleared.
        if (prompt.jobId !== null) livePrompts.clearJob(prompt);
        return this.#applyWait(this.#hadJob ? 'job_lost' : 'in_outbox');
      case 'sought':
        return this.#applyWait('searching');
      case 'attached':
        return this.#applyLinked();
      case 'released':
        prompt.isReleased = true;
        hub.channels.supersedeOthers(prompt.channel);
        return hub.sendStatus(prompt.caller.user);
      case 'taken':
        prompt.isTakenOver = true;
        prompt.lacksCredential = false;
        return;
      case 'recorded':
        return this.#sendClosing(position);
      case 'removed':
        livePrompts.remove(prompt);
        spans?.left(prompt.key);
        return hub.channels.close(prompt.channel);
    }
  }

  #applyWait(reason: WaitReason): void {
    this.#ports.frames.livePrompts.setWaitReason(this.#prompt, reason);
    this.#notifyOf(reason);
  }

  #notifyOf(reason: WaitReason): void {
    const { promptId, caller } = this.#prompt;
    const { notification } = pendingRow(reason);
    if (!notification) return;
    this.#ports.frames.hub.notify(caller.user, NOTIFICATION_TEXTS[notification](promptId));
  }

  async #applyLinked(): Promise<void> {
    const { frames, records } = this.#ports;
    this.#hadJob = true;
    frames.livePrompts.removeFromOutbox(this.#prompt);
    if (this.#prompt.jobId !== null) return;
    const row = await records.prompts.get(this.#prompt.key);
    readLinkedJob(frames.livePrompts, this.#prompt, row);
  }

  async #applyInput(input: ProgressInput, position: number): Promise<void> {
    this.#updateStatusFrom(input);
    // The user is told once, not at each move of the queue.
    if (hasPlaceInQueue(input) && !this.#isInQueue) {
      this.#isInQueue = true;
      this.#notifyOf('job_queued');
    }
    if (this.#prompt.progress === undefined && isStillQueued(input)) return;
    const { state, effects } = reduceProgress(this.state(), input);
    this.#prompt.progress = state;
    // The position is marked before the frames are sent: a client that gets a frame here may ask
    // another process for the rest at once.
    if (position > 0 && effects.length > 0 && effects.every(isSentNow)) {
      for (const group of this.#prompt.channel.receiverGroups())
        this.#markReceived(group, position);
    }
    for (const effect of effects) {
      if (effect.kind === 'end') {
        this.#endEffect = effect;
        continue;
      }
      // Frames of other prompts come between these only while a picture is fetched.
      const sent = this.#frameSender.send(effect, position);
      if (sent) await sent;
    }
  }

  /**
   * Marks that the log is applied up to this position. Position 0: no other process has the prompt.
   */
  #markReached(position: number): void {
    if (position === 0) return;
    for (const group of this.#prompt.channel.receivedBy(position)) {
      this.#markReceived(group, position);
    }
  }

  #markReceived(group: ReceiverGroup, position: number): void {
    if (position <= this.#receivedUpTo[group]) return;
    this.#receivedUpTo[group] = position;
    this.#ports.records.eventLog.markReceived(this.#prompt.key, group, position);
  }

  #updateStatusFrom(input: ProgressInput): void {
    if (input.kind === 'event' && input.event.event === 'status') {
      this.#updateStatus(input.event.data.status);
    } else if (input.kind === 'snapshot' && input.job.status === 'running') {
      this.#updateStatus('running');
    }
  }

  /** v1 sends the count again when a prompt leaves the queue. */
  #updateStatus(status: JobStatus): void {
    const starts = status === 'running' && this.#prompt.status === 'queued';
    if (!IS_TERMINAL[status]) this.#prompt.status = status;
    if (starts) this.#ports.frames.hub.sendStatus(this.#prompt.caller.user);
  }

  /** Sends v1's last frame. Most clients read the history at the same moment. */
  #sendClosing(position: number): void {
    const { livePrompts, hub, spans } = this.#ports.frames;
    const { channel, caller } = this.#prompt;
    livePrompts.remove(this.#prompt);
    hub.sendStatus(caller.user);
    if (this.#endEffect) {
      channel.send({ kind: 'json', message: this.#endEffect.closing }, position);
    }
    hub.channels.close(channel);
    spans?.ended(this.#prompt.key, this.state().outcome ?? 'lost');
  }
}

/** True when an input says only that the job is still queued. Thousands may wait beside it. */
function isStillQueued(input: ProgressInput): boolean {
  const queued = queuedStatusIn(input);
  return queued !== undefined && queued.x_cached_nodes === undefined;
}

/** True for an event that tells the place of the job among those that wait. */
function hasPlaceInQueue(input: ProgressInput): boolean {
  return typeof queuedStatusIn(input)?.queue_position === 'number';
}

function queuedStatusIn(input: ProgressInput) {
  if (input.kind !== 'event' || input.event.event !== 'status') return undefined;
  return input.event.data.status === 'queued' ? input.event.data : undefined;
}

/**
 * True for an effect that is sent at once. The end is not, and a picture that must be fetched is
 * not.
 */
function isSentNow(effect: ProgressEffect): boolean {
  if (effect.kind === 'end') return false;
  return !('picture' in effect && effect.picture && 'assetId' in effect.picture);
}
