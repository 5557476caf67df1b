import type { Board, LivePrompt, PromptDraft } from './board.ts';
import { keep, putAway, replace, valueOf } from './kept.ts';

/** So many of a user's prompts are kept ready to run. */
const NEAR = 16;

/** Its turn is not near: what it says is not needed soon. */
export function restIfFar(board: Board, { caller, status, kept }: LivePrompt): void {
  if (status !== 'queued' || board.count(caller.user) <= NEAR) return;
  putAway(kept.graph);
  putAway(kept.extraData);
}

type Place = Pick<LivePrompt, 'caller' | 'channel'>;

export function newPrompt(draft: PromptDraft, place: Place): LivePrompt {
  return new Prompt(draft, place);
}

/**
 * A class, for its accessors: written into every object they would give every object a shape of its
 * own. Member by member: spreading drafts takes a hundred times as long, and every prompt comes by.
 */
class Prompt implements LivePrompt {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly kept: LivePrompt['kept'];
  targets: readonly string[];
  isResumed: boolean;
  caller: LivePrompt['caller'];
  readonly channel: LivePrompt['channel'];
  jobId: string | null = null;
  status: LivePrompt['status'] = undefined;
  hasEvidence = false;
  cancelAsked = false;
  isReleased = false;
  waits = false;
  startedAtMs: number | null = null;

  constructor(draft: PromptDraft, { caller, channel }: Place) {
    this.key = draft.key;
    this.promptId = draft.promptId;
    this.number = draft.number;
    this.clientId = draft.clientId;
    this.createdAtMs = draft.createdAtMs;
    this.kept = {
      graph: keep(draft.graph, draft.graphJson),
      extraData: keep(draft.extraData, draft.extraDataJson),
    };
    this.targets = draft.targets;
    this.isResumed = draft.isResumed;
    this.caller = caller;
    this.channel = channel;
  }

  get graph() {
    return valueOf(this.kept.graph);
  }

  set graph(value) {
    replace(this.kept.graph, value);
  }

  get extraData() {
    return valueOf(this.kept.extraData);
  }
}
