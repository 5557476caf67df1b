import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type JsonObject, parseJson } from '../wire/json.ts';
import type { Graph } from '../wire/v2.ts';
import type { Board, LivePrompt, PromptDraft } from './board.ts';
import type { Cancel } from './cancel.ts';
import type { Follower } from './follower.ts';
import type { Forget } from './forget.ts';
import type { Hub } from './hub.ts';
import type { Keyring } from './keyring.ts';
import type { Outbox } from './outbox.ts';
import { isInDoubt, isOurs, needsOwnKey, planOfRow } from './plan.ts';
import { LeadLost, type PromptJournal } from './prompt-journal.ts';
import type { Pursuit } from './pursuit.ts';
import type { Reconciler } from './reconciler.ts';
import { readJob } from './teller.ts';

type Deps = {
  readonly ledger: Ledger;
  readonly journal: PromptJournal;
  readonly board: Board;
  readonly follower: Follower;
  readonly outbox: Outbox;
  readonly reconciler: Reconciler;
  readonly pursuit: Pursuit;
  readonly forget: Forget;
  readonly keyring: Keyring;
  readonly hub: Pick<Hub, 'fetched'>;
  readonly cancelAsked: Cancel['cancelAsked'];
  /** Whether nothing can be done for a user before they call: their key was never stored. */
  readonly needsOwner: (user: string) => boolean;
  readonly log: Logger;
};

/** Takes up what processes that are gone left. */
export type Resumption = {
  /** Puts all live prompts on the board, and takes up those nobody looks after. */
  start(): Promise<void>;
  /** What waited for a call of this user is taken up. */
  ready(user: string): Promise<void>;
  /** Puts a prompt of another process on the board. */
  readonly discover: (key: string) => Promise<void>;
};

/**
 * Prompts with a job are followed again, those without are submitted under the key they have, or
 * looked for.
 */
export function createResumption(deps: Deps): Resumption {
  const { ledger, journal, follower, keyring, log } = deps;
  /** They wait for a call of their user. */
  const asleep = new Map<string, Set<string>>();
  const keyless = new Map<string, Set<LivePrompt>>();
  /** They can be sent with the key of their user only. */
  const ownKeyed = new WeakSet<LivePrompt>();
  const waking = new Map<string, Promise<void>>();

  function show(row: PromptRow): LivePrompt {
    const { user } = row;
    const prompt = follower.adopt(draftOf(row), keyring.callerOf(user));
    prompt.cancelAsked ||= row.cancelAskedAtMs !== null;
    readJob(deps.board, prompt, row);
    if (needsOwnKey(row)) ownKeyed.add(prompt);
    if (!mayServe(prompt)) keyless.set(user, (keyless.get(user) ?? new Set()).add(prompt));
    return prompt;
  }

  function mayServe(prompt: LivePrompt): boolean {
    const { user } = prompt.caller;
    const needsKey = prompt.jobId === null && ownKeyed.has(prompt);
    if (!needsKey && !deps.needsOwner(user)) return true;
    return keyring.callerOf(user).credential !== undefined;
  }

  /** Takes over one nobody looks after; what is then to be done. */
  async function consider(key: string): Promise<Step | undefined> {
    const known = follower.find(key);
    const row = known ? undefined : await ledger.prompts.get(key);
    if (!known && (!row || row.state === 'done')) return sweep(key, row);
    const prompt = known ?? (row && show(row));
    if (!prompt) return undefined;
    prompt.isResumed = true;
    const { user } = prompt.caller;
    if (!mayServe(prompt)) {
      asleep.set(user, (asleep.get(user) ?? new Set()).add(key));
      return undefined;
    }
    return (await journal.takeOver(key)) ? takeUp(deps, prompt) : undefined;
  }

  /** Its process died before the ledger knew of it, or after its history was written. */
  async function sweep(key: string, row: PromptRow | undefined): Promise<undefined> {
    if (!(await journal.takeOver(key))) return undefined;
    if (row) await journal.append(key, { kind: 'recorded' });
    else await journal.drop(key);
    return undefined;
  }

  async function attempt(key: string): Promise<Step | undefined> {
    try {
      return await consider(key);
    } catch (error) {
      if (!(error instanceof LeadLost)) log.error({ err: error }, 'a prompt could not be taken up');
      return undefined;
    }
  }

  async function vacant(keys: readonly string[]): Promise<void> {
    const steps: Step[] = [];
    for (const key of keys) steps.push((await attempt(key)) ?? (() => undefined));
    // All at once: a letter must not leave before an earlier one is in the outbox again.
    await Promise.all(steps.map(async (goOn) => goOn()));
  }

  function wake(user: string): void {
    for (const prompt of keyless.get(user) ?? []) prompt.caller = keyring.callerOf(user);
    keyless.delete(user);
    const keys = asleep.get(user);
    if (!keys) return;
    asleep.delete(user);
    const task = vacant([...keys])
      .catch((error: unknown) => log.error({ err: error }, 'prompts could not be taken up'))
      .finally(() => waking.delete(user));
    waking.set(user, task);
  }

  async function discover(key: string): Promise<void> {
    if (follower.find(key)) return;
    const row = await ledger.prompts.get(key);
    if (row && row.state !== 'done') show(row);
  }

  async function endOf(key: string): Promise<'recorded' | 'removed' | 'none'> {
    const row = await ledger.prompts.get(key);
    if (!row) return 'removed';
    return row.state === 'done' ? 'recorded' : 'none';
  }

  return {
    async start() {
      keyring.onCall(({ user }) => wake(user));
      const rows = await ledger.prompts.live();
      for (const row of rows) show(row);
      const keys = rows.map(({ key }) => key);
      const { cancelAsked } = deps;
      const fetched = (user: string, promptId: string): void => {
        deps.hub.fetched(user, [promptId]);
      };
      await journal.start({ vacant, discover, endOf, cancelAsked, fetched }, keys);
      if (keys.length === 0) return;
      log.info({ prompts: keys.length, waiting: asleep.size }, 'live prompts taken up again');
    },
    ready: async (user) => waking.get(user),
    discover,
  };
}

/** What is left to do, once everything else is in its place. */
type Step = () => Promise<void> | void;

function draftOf(row: PromptRow): PromptDraft {
  const { key, promptId, number, clientId, createdAtMs } = row;
  return {
    key,
    promptId,
    number,
    clientId,
    createdAtMs,
    graph: parseJson(row.graphJson) as Graph,
    graphJson: row.graphJson,
    extraData: parseJson(row.extraDataJson) as JsonObject,
    extraDataJson: row.extraDataJson,
    targets: parseJson(row.targetsJson) as readonly string[],
    isResumed: false,
    isV2Job: !isOurs(row),
  };
}

/** What it was at when its process died, it is at again. */
async function takeUp(deps: Deps, prompt: LivePrompt): Promise<Step | undefined> {
  const { ledger, board, follower, keyring, forget } = deps;
  prompt.caller = keyring.callerOf(prompt.caller.user);
  // Its end was written down; what comes after it was not, or not all of it.
  if (!board.has(prompt)) return () => forget(prompt);
  if (follower.conclude(prompt)) return undefined;
  const row = await ledger.prompts.get(prompt.key);
  if (!row) return () => forget(prompt);
  if (!(await follower.note(prompt, 'taken'))) return undefined;
  follower.release(prompt);
  return row.jobId === null ? submitAgain(deps, prompt, row) : follow(deps, prompt, row.jobId);
}

function follow({ follower, pursuit }: Deps, prompt: LivePrompt, jobId: string): Step {
  const { graph, targets, cancelAsked } = prompt;
  follower.attach(prompt, { jobId, graph, targets });
  return async () => {
    await follower.begin(prompt);
    if (cancelAsked) void pursuit.pursue(prompt);
  };
}

function submitAgain(deps: Deps, prompt: LivePrompt, row: PromptRow): Step {
  const { outbox, reconciler } = deps;
  const plan = planOfRow(row, prompt.caller);
  const told = TOLD[row.state === 'unknown' || row.state === 'outbox' ? row.state : 'submitting'];
  const isDoubtful = isInDoubt(row);
  const { lacksSecrets } = plan;
  if (prompt.cancelAsked && !isDoubtful) {
    return () => void deps.follower.settle(prompt, { kind: 'canceled' });
  }
  if (lacksSecrets && !isDoubtful) return () => abandon(deps, prompt, told);
  // Whoever asked for its end does not want it sent once more; it may have been sent already.
  const isKeyUsed = prompt.cancelAsked || lacksSecrets;
  if (told !== 'unknown' && !isKeyUsed) {
    return () => outbox.put({ prompt, plan, told, isInDoubt: isDoubtful });
  }
  return () => reconciler.take({ prompt, plan, told, isKeyUsed });
}

/** What a client had heard when the process died. */
const TOLD = { submitting: 'unheard', outbox: 'accepted', unknown: 'unknown' } as const;

function abandon(
  deps: Deps,
  prompt: LivePrompt,
  told: 'unheard' | 'accepted' | 'unknown',
): Promise<void> | void {
  if (told === 'unheard') return deps.forget(prompt);
  const error = { code: 'credentials_gone', message: GONE, x_exception_type: 'ServiceError' };
  void deps.follower.settle(prompt, { kind: 'failed', error });
}

const GONE =
  'This prompt came with a key of its own. Keys are never stored, and the server was restarted ' +
  'before the job could be submitted. Please submit it again.';
