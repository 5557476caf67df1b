import { type Json, LosslessNumber, isSameJson, parseJson } from '../../protocol/json.ts';
import { toJsonText } from '../../lib/lazy-json.ts';
import type { Caller } from '../../protocol/job-api.ts';
import type { LivePrompt } from '../live-prompt.ts';
import { V1Error, plainError } from '../../dialects/errors.ts';
import type { Follower } from '../follow/follower.ts';
import { withReplacements } from '../../translate/node-replacements.ts';
import type { PromptPorts } from '../ports.ts';
import type { Submission } from '../submission.ts';
import type { PromptTakeover } from '../take-over.ts';

/** How long a takeover is awaited: the lease, the interval of checks, and a margin. */
const TAKEOVER_WAIT_MS = { interval: 50, max: 8000 } as const;

/** Finds live prompts that have the same id as a submission. */
export class DuplicateIds {
  readonly #ports: PromptPorts;
  readonly #follower: Follower;
  readonly #takeover: PromptTakeover;

  constructor(ports: PromptPorts, follower: Follower, takeover: PromptTakeover) {
    this.#ports = ports;
    this.#follower = follower;
    this.#takeover = takeover;
  }

  /**
   * Finds the prompt of a client that lost its answer when the process died and sends its id
   * again.
   */
  async findTakenOver(
    caller: Caller,
    { promptId, graph }: Submission,
  ): Promise<LivePrompt | undefined> {
    if (promptId === undefined) return undefined;
    const { user } = caller;
    const { prompts, eventLog } = this.#ports.records;
    const isSame = async (graphJson: string): Promise<boolean> => {
      const sent = withReplacements(graph, await this.#ports.jobs.objectInfo(caller));
      return isSameJson(sent as Json, parseJson(graphJson), isCoerced);
    };
    const local = this.#ports.frames.livePrompts.find(user, promptId);
    const isLocal = local?.isTakenOver === true && local.promptId === promptId;
    if (isLocal && (await isSame(toJsonText(local.lazy.graph)))) return local;
    const row = await prompts.find(user, promptId);
    if (!row || row.state === 'done' || eventLog.isLeader(row.key)) return undefined;
    if (!(await isSame(row.graphJson))) return undefined;
    await this.#takeover.discover(row.key);
    const duplicate = this.#follower.find(row.key);
    return duplicate && this.#waitForTakeover(duplicate);
  }

  /**
   * Refuses a live id that is sent again with the same number: the original's worker fails on
   * that. With another number the original accepts it.
   */
  refuseDuplicate({ user }: Caller, { promptId, number }: Submission): void {
    const { livePrompts } = this.#ports.frames;
    const duplicate = promptId === undefined ? undefined : livePrompts.find(user, promptId);
    if (duplicate?.promptId !== promptId || duplicate?.number !== number) return;
    const message = `A prompt with the id ${promptId} and this number is already queued.`;
    throw new V1Error(400, plainError('duplicate_prompt_id', message));
  }

  /**
   * Waits until a process has taken the prompt over, or its own process has answered. Returns a
   * prompt that was taken over.
   */
  async #waitForTakeover(prompt: LivePrompt): Promise<LivePrompt | undefined> {
    const { frames, records, policy } = this.#ports;
    const { deadlineClock: clock } = policy;
    const deadlineMs = clock.now() + TAKEOVER_WAIT_MS.max;
    while (!prompt.isTakenOver && clock.now() < deadlineMs) {
      if (prompt.isReleased || !frames.livePrompts.has(prompt)) return undefined;
      await clock.sleep(TAKEOVER_WAIT_MS.interval);
      if (prompt.isTakenOver || (await records.prompts.get(prompt.key))) continue;
      // The prompt was refused, and its leader reports no refusal to other processes.
      this.#follower.untrack(prompt.key, undefined);
    }
    return prompt.isTakenOver ? prompt : undefined;
  }
}

/** True for a literal and one of another type that it may have been coerced to. `undefined`: these are no such literals. */
function isCoerced(sent: Json | undefined, recorded: Json | undefined): boolean | undefined {
  if (!isLiteral(sent) || !isLiteral(recorded) || typeof sent === typeof recorded) return undefined;
  return String(sent) === String(recorded) || Number(sent) === Number(recorded);
}

function isLiteral(value: Json | undefined): value is string | number | boolean | LosslessNumber {
  return value instanceof LosslessNumber || ['string', 'number', 'boolean'].includes(typeof value);
}
