import type { PromptRow } from '../../ledger/ledger.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import type { Caller } from '../../protocol/job-api.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { V1Error, plainError } from '../../dialects/errors.ts';
import type { Follower } from '../follow/follower.ts';
import { toJsonText } from '../../lib/lazy-json.ts';
import type { PromptContext } from '../context.ts';
import type { Submission } from '../submission.ts';

export type DuplicateIds = ReturnType<typeof createDuplicateIds>;

type DuplicateIdOptions = PromptContext & {
  readonly follower: Follower;
  /** Shows a prompt of another process. */
  readonly discover: (key: string) => Promise<void>;
};

/** How long a takeover is awaited: the lease, the interval of checks, and a margin. */
const TAKEOVER_WAIT_MS = { interval: 50, max: 8000 } as const;

/** Finds live prompts that have the same id as a submission. */
export function createDuplicateIds(options: DuplicateIdOptions) {
  const { ledger, promptEventLog, livePrompts, follower, deadlineClock } = options;

  async function discoverPrompt(key: string): Promise<LivePrompt | undefined> {
    if (!follower.find(key)) await options.discover(key);
    return follower.find(key);
  }

  /**
   * Waits until a process has taken the prompt over, or its own process has answered. Returns a
   * prompt that was taken over.
   */
  async function waitForTakeover(prompt: LivePrompt): Promise<LivePrompt | undefined> {
    const deadlineMs = deadlineClock.now() + TAKEOVER_WAIT_MS.max;
    while (!prompt.isTakenOver && deadlineClock.now() < deadlineMs) {
      if (prompt.isReleased || !livePrompts.has(prompt)) return undefined;
      await deadlineClock.sleep(TAKEOVER_WAIT_MS.interval);
      if (prompt.isTakenOver || (await ledger.prompts.get(prompt.key))) continue;
      // The prompt was refused, and its leader reports no refusal to other processes.
      follower.untrack(prompt.key, undefined);
    }
    return prompt.isTakenOver ? prompt : undefined;
  }

  return {
    /**
     * Finds the prompt of a client that lost its answer when the process died and sends its id
     * again.
     */
    async findTakenOver({ user }: Caller, { promptId, graph }: Submission) {
      if (promptId === undefined) return undefined;
      const isSame = (graphJson: string) => graphJson === stringifyJson(graph as Json);
      const local = livePrompts.find(user, promptId);
      const isLocal = local?.isTakenOver === true && local.promptId === promptId;
      if (isLocal && isSame(toJsonText(local.lazy.graph))) return local;
      const row = await ledger.prompts.find(user, promptId);
      if (!isLiveRow(row) || promptEventLog.isLeader(row.key) || !isSame(row.graphJson))
        return undefined;
      const duplicate = await discoverPrompt(row.key);
      return duplicate && waitForTakeover(duplicate);
    },
    /**
     * Refuses a live id that is sent again with the same number: the original's worker fails on
     * that. With another number the original accepts it.
     */
    refuseDuplicate({ user }: Caller, { promptId, number }: Submission): void {
      const duplicate = promptId === undefined ? undefined : livePrompts.find(user, promptId);
      if (duplicate?.promptId !== promptId || duplicate?.number !== number) return;
      const message = `A prompt with the id ${promptId} and this number is already queued.`;
      throw new V1Error(400, plainError('duplicate_prompt_id', message));
    },
  };
}

function isLiveRow(row: PromptRow | undefined): row is PromptRow {
  return row !== undefined && row.state !== 'done';
}
