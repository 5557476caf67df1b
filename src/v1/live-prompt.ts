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

/** Member by member: spreading drafts takes a hundred times as long, and every prompt comes by. */
export function newPrompt(
  draft: PromptDraft,
  { caller, channel }: Pick<LivePrompt, 'caller' | 'channel'>,
): LivePrompt {
  const graph = keep(draft.graph, draft.graphJson);
  const extraData = keep(draft.extraData, draft.extraDataJson);
  return {
    kept: { graph, extraData },
    get graph() {
      return valueOf(graph);
    },
    set graph(value) {
      replace(graph, value);
    },
    get extraData() {
      return valueOf(extraData);
    },
    key: draft.key,
    promptId: draft.promptId,
    number: draft.number,
    clientId: draft.clientId,
    createdAtMs: draft.createdAtMs,
    targets: draft.targets,
    isResumed: draft.isResumed,
    caller,
    channel,
    jobId: null,
    status: undefined,
    hasEvidence: false,
    cancelAsked: false,
    isReleased: false,
    waits: false,
    startedAtMs: null,
  };
}
