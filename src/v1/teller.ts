import type { PromptRow } from '../ledger/ledger.ts';
import {
  type Effect,
  type Input,
  type ProgressState,
  hasEvidence,
  initialProgress,
} from '../translate/progress-state.ts';
import { idleDueMs, step } from '../translate/progress.ts';
import { parseJson } from '../wire/json.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../wire/v2.ts';
import type { Board, LivePrompt } from './board.ts';
import type { FollowerDeps } from './follower.ts';
import { NOTICES } from './notices.ts';
import type { Audience, Entry } from './prompt-journal.ts';
import { createSpeaker } from './speaker.ts';

/** Says one prompt's entries in v1's words, and keeps what the board shows of it up to date. */
export type Teller = {
  apply(entry: Entry, at: number): Promise<void>;
  readonly state: () => ProgressState;
  readonly hasEnded: () => boolean;
  /** When it may have something to say of its own accord; `null`: not as things stand. */
  readonly dueMs: () => number | null;
};

export type TellerDeps = Pick<FollowerDeps, 'jobs' | 'ledger' | 'board' | 'hub' | 'log'> & {
  readonly journal: Pick<FollowerDeps['journal'], 'received' | 'leads'>;
};

export function createTeller(deps: TellerDeps, prompt: LivePrompt): Teller {
  const { board, hub, journal } = deps;
  const { channel } = prompt;
  const { user } = prompt.caller;
  const speaker = createSpeaker(deps, prompt);
  let state: ProgressState | undefined;
  const receivedUpTo = { client: 0, hosted: 0 };
  /** Its service has had it: it waits to be sent again. */
  let wasTaken = false;
  let ending: (Effect & { kind: 'end' }) | undefined;

  /** Its graph is final when the first input comes, and not before. */
  function current(): ProgressState {
    return state ?? initialProgress({ promptId: prompt.promptId, graph: prompt.graph });
  }

  async function take(input: Input, at: number): Promise<void> {
    noteStatusOf(input);
    if (state === undefined && isStillQueued(input)) return;
    const turn = step(current(), input);
    state = turn.state;
    prompt.hasEvidence = hasEvidence(state);
    prompt.startedAtMs = state.startedAtMs;
    // Told first: a client that heard it here may ask elsewhere for the rest at once.
    if (turn.effects.length > 0 && turn.effects.every(isAtHand)) {
      for (const audience of channel.audiences()) noteReceived(audience, at);
    }
    for (const effect of turn.effects) {
      if (effect.kind === 'end') ending = effect;
      else await speaker.say(effect, at);
    }
  }

  function noteReceived(audience: Audience, at: number): void {
    if (at <= receivedUpTo[audience]) return;
    receivedUpTo[audience] = at;
    journal.received(prompt.key, audience, at);
  }

  function noteStatusOf(input: Input): void {
    if (input.kind === 'event' && input.event.event === 'status') {
      noteStatus(input.event.data.status);
    } else if (input.kind === 'snapshot' && input.job.status === 'running') noteStatus('running');
  }

  /** v1 tells its sockets the count once more when a prompt leaves the queue. */
  function noteStatus(status: JobStatus): void {
    const starts = status === 'running' && prompt.status === 'queued';
    if (!IS_TERMINAL[status]) prompt.status = status;
    if (starts) hub.status(user);
  }

  function notifyOf(what: Exclude<keyof typeof NOTICES, 'brownout'>): void {
    hub.notify(user, NOTICES[what](prompt.promptId));
  }

  /** Most clients read the history in the same breath as v1's last frame. */
  function close(at: number): void {
    board.remove(prompt);
    hub.status(user);
    if (ending) channel.send({ kind: 'json', message: ending.closing }, at);
    hub.retire(channel);
  }

  async function act(entry: Entry, at: number): Promise<void> {
    switch (entry.kind) {
      case 'input':
        return take(entry.input, at);
      case 'waits':
        // Its job is gone from the board already where the process itself sends it again.
        notifyOf(wasTaken ? 'sentAgain' : 'noRoom');
        if (prompt.jobId !== null) board.dismiss(prompt);
        return board.post(prompt);
      case 'sought':
        notifyOf('outcomeUnknown');
        return board.unpost(prompt);
      case 'attached':
        wasTaken = true;
        board.unpost(prompt);
        if (prompt.jobId === null)
          readJob(board, prompt, await deps.ledger.prompts.get(prompt.key));
        return;
      case 'released':
        prompt.isReleased = true;
        hub.submitted(channel);
        return hub.status(user);
      case 'taken':
        prompt.isResumed = true;
        return;
      case 'recorded':
        return close(at);
      case 'removed':
        board.remove(prompt);
        return hub.retire(channel);
    }
  }

  return {
    state: current,
    // Asked at every turn: one that waits is not unpacked for it.
    hasEnded: () => state?.phase === 'ended',
    dueMs: () => (state === undefined ? null : idleDueMs(state)),
    async apply(entry, at) {
      await act(entry, at);
      for (const audience of channel.receivedBy(at)) noteReceived(audience, at);
    },
  };
}

/** Nothing has happened to it, as to thousands that wait beside it. */
function isStillQueued(input: Input): boolean {
  if (input.kind !== 'event' || input.event.event !== 'status') return false;
  const { status, x_cached_nodes: cached } = input.event.data;
  return status === 'queued' && cached === undefined;
}

/** It is said in this turn; the end is not, and a picture that is yet to be read. */
function isAtHand(effect: Effect): boolean {
  if (effect.kind === 'end') return false;
  return !('picture' in effect && effect.picture && 'assetId' in effect.picture);
}

/** Its job came to be at another process. */
export function readJob(board: Board, prompt: LivePrompt, row: PromptRow | undefined): void {
  if (!row || row.jobId === null) return;
  board.employ(prompt, row.jobId);
  Object.assign(prompt, {
    graph: parseJson(row.graphJson) as Graph,
    targets: parseJson(row.targetsJson) as readonly string[],
    status: 'queued',
  });
}
