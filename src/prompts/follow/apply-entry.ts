import type { Ledger, PromptRow } from '../../ledger/ledger.ts';
import {
  type ProgressEffect,
  type ProgressInput,
  type ProgressState,
  hasEvidence,
  initialProgress,
} from '../../translate/progress-state.ts';
import { idleDueMs, reduceProgress } from '../../translate/progress.ts';
import { parseJson } from '../../protocol/json.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../../protocol/v2.ts';
import type { LivePrompts, LivePrompt } from '../live-prompts.ts';
import { NOTIFICATION_TEXTS } from '../../translate/notification-texts.ts';
import type { PromptEventLog, PromptLogEntry } from '../prompt-event-log.ts';
import type { ReceiverGroup } from '../../sockets/receivers.ts';
import type { Hub } from '../../sockets/hub.ts';
import { type FrameSenderOptions, createFrameSender } from './send-frames.ts';

/** Applies the log entries of one prompt: sends its frames, and updates what the queue shows. */
export type EntryApplier = {
  apply(entry: PromptLogEntry, position: number): Promise<void>;
  readonly state: () => ProgressState;
  readonly hasEnded: () => boolean;
  /** When an `idle` input is due; `null`: none is. */
  readonly nextDueMs: () => number | null;
};

export type EntryApplierOptions = FrameSenderOptions & {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly livePrompts: LivePrompts;
  readonly hub: Hub;
  readonly promptEventLog: Pick<PromptEventLog, 'markReceived' | 'isLeader'>;
};

export function createEntryApplier(deps: EntryApplierOptions, prompt: LivePrompt): EntryApplier {
  const { livePrompts, hub, promptEventLog } = deps;
  const { channel } = prompt;
  const { user } = prompt.caller;
  const frameSender = createFrameSender(deps, prompt);
  let state: ProgressState | undefined;
  const receivedUpTo = { client: 0, hosted: 0 };
  /** It had a job: it waits to be sent again. */
  let hadJob = false;
  let endEffect: (ProgressEffect & { kind: 'end' }) | undefined;

  /** The graph is final only when the first input comes. */
  function current(): ProgressState {
    return state ?? initialProgress({ promptId: prompt.promptId, graph: prompt.graph });
  }

  async function applyInput(input: ProgressInput, position: number): Promise<void> {
    updateStatusFrom(input);
    if (state === undefined && isStillQueued(input)) return;
    const update = reduceProgress(current(), input);
    state = update.state;
    prompt.hasEvidence = hasEvidence(state);
    prompt.startedAtMs = state.startedAtMs;
    // Mark first: a client that gets the frame here may ask another process for the rest at once.
    if (update.effects.length > 0 && update.effects.every(isSentNow)) {
      for (const group of channel.receiverGroups()) markReceived(group, position);
    }
    for (const effect of update.effects) {
      if (effect.kind === 'end') endEffect = effect;
      else await frameSender.send(effect, position);
    }
  }

  function markReceived(group: ReceiverGroup, position: number): void {
    if (position <= receivedUpTo[group]) return;
    receivedUpTo[group] = position;
    promptEventLog.markReceived(prompt.key, group, position);
  }

  function updateStatusFrom(input: ProgressInput): void {
    if (input.kind === 'event' && input.event.event === 'status') {
      updateStatus(input.event.data.status);
    } else if (input.kind === 'snapshot' && input.job.status === 'running') updateStatus('running');
  }

  /** v1 sends the count again when a prompt leaves the queue. */
  function updateStatus(status: JobStatus): void {
    const starts = status === 'running' && prompt.status === 'queued';
    if (!IS_TERMINAL[status]) prompt.status = status;
    if (starts) hub.status(user);
  }

  function notifyUser(text: Exclude<keyof typeof NOTIFICATION_TEXTS, 'brownout'>): void {
    hub.notify(user, NOTIFICATION_TEXTS[text](prompt.promptId));
  }

  /** Most clients read the history at the same moment as v1's last frame. */
  function sendClosing(position: number): void {
    livePrompts.remove(prompt);
    hub.status(user);
    if (endEffect) channel.send({ kind: 'json', message: endEffect.closing }, position);
    hub.closeChannel(channel);
  }

  async function applyEntry(entry: PromptLogEntry, position: number): Promise<void> {
    switch (entry.kind) {
      case 'input':
        return applyInput(entry.input, position);
      case 'waits':
        // Where this process sends it again, its job is already cleared.
        notifyUser(hadJob ? 'sentAgain' : 'noRoom');
        if (prompt.jobId !== null) livePrompts.clearJobId(prompt);
        return livePrompts.markWaiting(prompt);
      case 'sought':
        notifyUser('outcomeUnknown');
        return livePrompts.clearWaiting(prompt);
      case 'attached':
        hadJob = true;
        livePrompts.clearWaiting(prompt);
        if (prompt.jobId === null)
          readLinkedJob(livePrompts, prompt, await deps.ledger.prompts.get(prompt.key));
        return;
      case 'released':
        prompt.isReleased = true;
        hub.submitted(channel);
        return hub.status(user);
      case 'taken':
        prompt.isResumed = true;
        return;
      case 'recorded':
        return sendClosing(position);
      case 'removed':
        livePrompts.remove(prompt);
        return hub.closeChannel(channel);
    }
  }

  return {
    state: current,
    // Asked often: a waiting prompt is not loaded for it.
    hasEnded: () => state?.phase === 'ended',
    nextDueMs: () => (state === undefined ? null : idleDueMs(state)),
    async apply(entry, position) {
      await applyEntry(entry, position);
      for (const group of channel.receivedBy(position)) markReceived(group, position);
    },
  };
}

/** Nothing has happened to the prompt, nor to thousands that wait beside it. */
function isStillQueued(input: ProgressInput): boolean {
  if (input.kind !== 'event' || input.event.event !== 'status') return false;
  const { status, x_cached_nodes: cached } = input.event.data;
  return status === 'queued' && cached === undefined;
}

/**
 * True for an effect that is sent at once; the end is not, nor a picture that has to be fetched.
 */
function isSentNow(effect: ProgressEffect): boolean {
  if (effect.kind === 'end') return false;
  return !('picture' in effect && effect.picture && 'assetId' in effect.picture);
}

/** Another process linked the job of the prompt: reads it from its record. */
export function readLinkedJob(
  livePrompts: LivePrompts,
  prompt: LivePrompt,
  row: PromptRow | undefined,
): void {
  if (!row || row.jobId === null) return;
  livePrompts.setJobId(prompt, row.jobId);
  Object.assign(prompt, {
    graph: parseJson(row.graphJson) as Graph,
    targets: parseJson(row.targetsJson) as readonly string[],
    status: 'queued',
  });
}
