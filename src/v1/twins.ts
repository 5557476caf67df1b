import { steadyNow } from '../lib/steady-clock.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import { type Json, stringifyJson } from '../wire/json.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Board, LivePrompt } from './board.ts';
import { V1Error, plainError } from './errors.ts';
import type { Follower } from './follower.ts';
import { jsonOf } from './kept.ts';
import type { PromptJournal } from './prompt-journal.ts';
import type { Submission } from './submission.ts';

/** Live prompts with the very id a submission names. */
export type Twins = {
  /** A client whose answer was lost with the process sends its own id again: it gets that answer. */
  resumed(caller: Caller, submission: Submission): Promise<LivePrompt | undefined>;
  /** The original accepts a live id again under another number; the same number kills its worker. */
  refuse(caller: Caller, submission: Submission): void;
};

type Deps = {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly journal: Pick<PromptJournal, 'leads'>;
  readonly board: Board;
  readonly follower: Pick<Follower, 'find' | 'disown'>;
  /** Puts a prompt of another process on the board. */
  readonly discover: (key: string) => Promise<void>;
};

/** What a dead process looked after is taken up by then: its lease, the next look, some air. */
const TAKEN_UP_MS = { every: 50, most: 8000 } as const;

export function createTwins(deps: Deps): Twins {
  const { ledger, journal, board, follower } = deps;

  async function known(key: string): Promise<LivePrompt | undefined> {
    if (!follower.find(key)) await deps.discover(key);
    return follower.find(key);
  }

  /** Its process is about to answer, or gone before it did. */
  async function onceTakenUp(prompt: LivePrompt): Promise<LivePrompt | undefined> {
    const deadlineMs = steadyNow() + TAKEN_UP_MS.most;
    while (!prompt.isResumed && steadyNow() < deadlineMs) {
      if (prompt.isReleased || !board.has(prompt)) return undefined;
      await delay(TAKEN_UP_MS.every);
      if (prompt.isResumed || (await ledger.prompts.get(prompt.key))) continue;
      // It was refused, and whoever refused it has told nobody else of it.
      follower.disown(prompt.key, undefined);
    }
    return prompt.isResumed ? prompt : undefined;
  }

  return {
    async resumed({ user }, { promptId, graph }) {
      if (promptId === undefined) return undefined;
      const isSame = (graphJson: string) => graphJson === stringifyJson(graph as Json);
      const here = board.find(user, promptId);
      const isHere = here?.isResumed === true && here.promptId === promptId;
      if (isHere && isSame(jsonOf(here.kept.graph))) return here;
      const row = await ledger.prompts.find(user, promptId);
      if (!isLive(row) || journal.leads(row.key) || !isSame(row.graphJson)) return undefined;
      const twin = await known(row.key);
      return twin && onceTakenUp(twin);
    },
    refuse({ user }, { promptId, number }) {
      const twin = promptId === undefined ? undefined : board.find(user, promptId);
      if (twin?.promptId !== promptId || twin?.number !== number) return;
      const message = `A prompt with the id ${promptId} and this number is already queued.`;
      throw new V1Error(400, plainError('duplicate_prompt_id', message));
    },
  };
}

function isLive(row: PromptRow | undefined): row is PromptRow {
  return row !== undefined && row.state !== 'done';
}
