import type { Ledger, PromptRow } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import { type JsonObject, parseJson } from '../../protocol/json.ts';
import type { Graph } from '../../protocol/v2.ts';
import type { LivePrompts, LivePrompt, PromptDraft } from '../live-prompts.ts';
import type { Cancel } from '../cancel.ts';
import type { Follower } from './follower.ts';
import type { RemovePrompt } from '../state/remove-prompt.ts';
import type { Hub } from '../../sockets/hub.ts';
import type { Keyring } from '../../auth/keyring.ts';
import type { Outbox } from '../submit/outbox.ts';
import {
  mayHaveBeenSent,
  isSubmittedThroughV1,
  needsCallerKey,
  restorePlan,
} from '../submit/plan.ts';
import { LeadershipLost, type PromptEventLog } from '../prompt-event-log.ts';
import type { JobCanceller } from './cancel-job.ts';
import type { SubmissionRecovery } from '../submit/recover.ts';
import { readLinkedJob } from './apply-entry.ts';

type ResumptionOptions = {
  readonly ledger: Ledger;
  readonly promptEventLog: PromptEventLog;
  readonly livePrompts: LivePrompts;
  readonly follower: Follower;
  readonly outbox: Outbox;
  readonly submissionRecovery: SubmissionRecovery;
  readonly jobCanceller: JobCanceller;
  readonly removePrompt: RemovePrompt;
  readonly keyring: Keyring;
  readonly hub: Pick<Hub, 'discardFetched'>;
  readonly cancelRequested: Cancel['cancelRequested'];
  /** True when a user's prompts need a call of the user first: the key is never stored. */
  readonly needsOwner: (user: string) => boolean;
  readonly log: Logger;
};

/** Resumes the prompts of processes that have ended. */
export type PromptResumption = {
  /** Shows all live prompts, and takes over those without an owner. */
  start(): Promise<void>;
  /** Resolves when the prompts that waited for a call of this user are resumed. */
  whenResumed(user: string): Promise<void>;
  /** Shows a prompt of another process. */
  readonly discover: (key: string) => Promise<void>;
};

/**
 * Prompts with a job are followed again. Prompts without one are submitted under the same key, or
 * their job is searched for.
 */
export function createPromptResumption(deps: ResumptionOptions): PromptResumption {
  const { ledger, promptEventLog, follower, keyring, log } = deps;
  /** Prompts that wait for a call of their user. */
  const awaitingCaller = new Map<string, Set<string>>();
  const withoutKey = new Map<string, Set<LivePrompt>>();
  /** Prompts that can be sent only with their user's key. */
  const needingCallerKey = new WeakSet<LivePrompt>();
  const resuming = new Map<string, Promise<void>>();

  function trackRow(row: PromptRow): LivePrompt {
    const { user } = row;
    const prompt = follower.trackPrompt(toDraft(row), keyring.callerOf(user));
    prompt.cancelRequested ||= row.cancelAskedAtMs !== null;
    readLinkedJob(deps.livePrompts, prompt, row);
    if (needsCallerKey(row)) needingCallerKey.add(prompt);
    if (!canProceed(prompt)) withoutKey.set(user, (withoutKey.get(user) ?? new Set()).add(prompt));
    return prompt;
  }

  function canProceed(prompt: LivePrompt): boolean {
    const { user } = prompt.caller;
    const needsKey = prompt.jobId === null && needingCallerKey.has(prompt);
    if (!needsKey && !deps.needsOwner(user)) return true;
    return keyring.callerOf(user).credential !== undefined;
  }

  /** Takes over a prompt without an owner; returns the step that is then to be done. */
  async function takeOverPrompt(key: string): Promise<NextStep | undefined> {
    const known = follower.find(key);
    const row = known ? undefined : await ledger.prompts.get(key);
    if (!known && (!row || row.state === 'done')) return discardLeftover(key, row);
    const prompt = known ?? (row && trackRow(row));
    if (!prompt) return undefined;
    prompt.isResumed = true;
    const { user } = prompt.caller;
    if (!canProceed(prompt)) {
      awaitingCaller.set(user, (awaitingCaller.get(user) ?? new Set()).add(key));
      return undefined;
    }
    return (await promptEventLog.takeOver(key)) ? resumePrompt(deps, prompt) : undefined;
  }

  /** Its process died before the ledger had it, or after its history was written. */
  async function discardLeftover(key: string, row: PromptRow | undefined): Promise<undefined> {
    if (!(await promptEventLog.takeOver(key))) return undefined;
    if (row) await promptEventLog.append(key, { kind: 'recorded' });
    else await promptEventLog.discard(key);
    return undefined;
  }

  async function tryTakeOver(key: string): Promise<NextStep | undefined> {
    try {
      return await takeOverPrompt(key);
    } catch (error) {
      if (!(error instanceof LeadershipLost))
        log.error({ event: 'prompt.takeover_failed', err: error }, 'could not take over a prompt');
      return undefined;
    }
  }

  async function takeOverVacant(keys: readonly string[]): Promise<void> {
    const steps: NextStep[] = [];
    for (const key of keys) steps.push((await tryTakeOver(key)) ?? (() => undefined));
    // All at once: a submission must not be sent before an earlier one is in the outbox again.
    await Promise.all(steps.map(async (runStep) => runStep()));
  }

  function resumeUser(user: string): void {
    for (const prompt of withoutKey.get(user) ?? []) prompt.caller = keyring.callerOf(user);
    withoutKey.delete(user);
    const keys = awaitingCaller.get(user);
    if (!keys) return;
    awaitingCaller.delete(user);
    const task = takeOverVacant([...keys])
      .catch((error: unknown) =>
        log.error({ event: 'prompt.resume_failed', err: error, user }, 'could not resume prompts'),
      )
      .finally(() => resuming.delete(user));
    resuming.set(user, task);
  }

  async function discover(key: string): Promise<void> {
    if (follower.find(key)) return;
    const row = await ledger.prompts.get(key);
    if (row && row.state !== 'done') trackRow(row);
  }

  async function endOf(key: string): Promise<'recorded' | 'removed' | 'none'> {
    const row = await ledger.prompts.get(key);
    if (!row) return 'removed';
    return row.state === 'done' ? 'recorded' : 'none';
  }

  return {
    async start() {
      keyring.onCaller(({ user }) => resumeUser(user));
      const rows = await ledger.prompts.live();
      for (const row of rows) trackRow(row);
      const keys = rows.map(({ key }) => key);
      const { cancelRequested } = deps;
      const fetched = (user: string, promptId: string): void => {
        deps.hub.discardFetched(user, [promptId]);
      };
      await promptEventLog.start(
        { takeOverVacant, discover, endOf, cancelRequested, resultFetched: fetched },
        keys,
      );
      if (keys.length === 0) return;
      log.info(
        { event: 'prompt.resumed', prompts: keys.length, waiting: awaitingCaller.size },
        'resumed live prompts',
      );
    },
    whenResumed: async (user) => resuming.get(user),
    discover,
  };
}

/** The rest of the work, done when all prompts are in place. */
type NextStep = () => Promise<void> | void;

function toDraft(row: PromptRow): PromptDraft {
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
    isV2Job: !isSubmittedThroughV1(row),
  };
}

/** Continues where the process ended. */
async function resumePrompt(
  deps: ResumptionOptions,
  prompt: LivePrompt,
): Promise<NextStep | undefined> {
  const { ledger, livePrompts, follower, keyring, removePrompt } = deps;
  prompt.caller = keyring.callerOf(prompt.caller.user);
  // Its end is recorded, but not all that comes after it.
  if (!livePrompts.has(prompt)) return () => removePrompt(prompt);
  if (follower.resumeFinish(prompt)) return undefined;
  const row = await ledger.prompts.get(prompt.key);
  if (!row) return () => removePrompt(prompt);
  if (!(await follower.appendEntry(prompt, 'taken'))) return undefined;
  follower.releaseFrames(prompt);
  return row.jobId === null
    ? resumeSubmission(deps, prompt, row)
    : resumeFollowing(deps, prompt, row.jobId);
}

function resumeFollowing(
  { follower, jobCanceller }: ResumptionOptions,
  prompt: LivePrompt,
  jobId: string,
): NextStep {
  const { graph, targets, cancelRequested } = prompt;
  follower.attachJob(prompt, { jobId, graph, targets });
  return async () => {
    await follower.follow(prompt);
    if (cancelRequested) void jobCanceller.cancelJob(prompt);
  };
}

function resumeSubmission(deps: ResumptionOptions, prompt: LivePrompt, row: PromptRow): NextStep {
  const { outbox, submissionRecovery } = deps;
  const plan = restorePlan(row, prompt.caller);
  const clientKnows =
    CLIENT_KNOWS_BY_STATE[
      row.state === 'unknown' || row.state === 'outbox' ? row.state : 'submitting'
    ];
  const isAmbiguous = mayHaveBeenSent(row);
  const { lacksSecrets } = plan;
  if (prompt.cancelRequested && !isAmbiguous) {
    return () => void deps.follower.finishWithoutJob(prompt, { kind: 'canceled' });
  }
  if (lacksSecrets && !isAmbiguous) return () => failWithoutSecrets(deps, prompt, clientKnows);
  // A prompt whose end was requested is not sent again; it may have been sent already.
  const isKeyUsed = prompt.cancelRequested || lacksSecrets;
  if (clientKnows !== 'unknown' && !isKeyUsed) {
    return () => outbox.add({ prompt, plan, clientKnows, mayHaveBeenSent: isAmbiguous });
  }
  return () => submissionRecovery.recover({ prompt, plan, clientKnows, isKeyUsed });
}

/** What the client knew when the process died, by the state in the ledger. */
const CLIENT_KNOWS_BY_STATE = {
  submitting: 'unheard',
  outbox: 'accepted',
  unknown: 'unknown',
} as const;

function failWithoutSecrets(
  deps: ResumptionOptions,
  prompt: LivePrompt,
  clientKnows: 'unheard' | 'accepted' | 'unknown',
): Promise<void> | void {
  if (clientKnows === 'unheard') return deps.removePrompt(prompt);
  const error = {
    code: 'credentials_gone',
    message: SECRETS_GONE,
    x_exception_type: 'ServiceError',
  };
  void deps.follower.finishWithoutJob(prompt, { kind: 'failed', error });
}

const SECRETS_GONE =
  'This prompt came with a key of its own. Keys are never stored, and the server was restarted ' +
  'before the job could be submitted. Please submit it again.';
