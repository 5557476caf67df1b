import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type JsonObject, parseJson } from '../wire/json.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
import type { LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import type { Keyring } from './keyring.ts';
import type { Outbox } from './outbox.ts';
import { planOfRow } from './plan.ts';
import type { Pursuit } from './pursuit.ts';
import { type Reconciler, forget } from './reconciler.ts';

type Deps = Parameters<typeof forget>[0] & {
  readonly ledger: Ledger;
  readonly follower: Follower;
  readonly outbox: Outbox;
  readonly reconciler: Reconciler;
  readonly pursuit: Pursuit;
  readonly keyring: Keyring;
  /** Whether nothing can be done for a user before they call: their key was never stored. */
  readonly needsOwner: (user: string) => boolean;
  readonly log: Logger;
};

/**
 * After a restart: prompts with a job are followed again, those without are submitted under the
 * key they have, or looked for. All of them are on the board at once.
 */
export async function resumePrompts(deps: Deps): Promise<void> {
  const rows = await deps.ledger.prompts.live();
  const asleep = new Map<string, (() => void)[]>();
  for (const row of rows) {
    const prompt = show(deps, row);
    const goOn = (): void => takeUp(deps, row, prompt);
    if (!deps.needsOwner(row.user)) goOn();
    else asleep.set(row.user, [...(asleep.get(row.user) ?? []), () => wake(deps, prompt, goOn)]);
  }
  deps.keyring.onCall(({ user }: Caller) => {
    const waiting = asleep.get(user);
    asleep.delete(user);
    for (const goOn of waiting ?? []) goOn();
  });
  if (rows.length > 0) {
    deps.log.info({ prompts: rows.length, waiting: asleep.size }, 'live prompts taken up again');
  }
}

function wake({ keyring }: Deps, prompt: LivePrompt, goOn: () => void): void {
  prompt.caller = keyring.callerOf(prompt.caller.user);
  goOn();
}

function show({ follower, board }: Deps, row: PromptRow): LivePrompt {
  const { key, promptId, number, clientId, createdAtMs } = row;
  const prompt = follower.adopt(
    {
      key,
      promptId,
      number,
      clientId,
      createdAtMs,
      graph: parseJson(row.graphJson) as Graph,
      extraData: parseJson(row.extraDataJson) as JsonObject,
      targets: parseJson(row.targetsJson) as readonly string[],
      isResumed: true,
    },
    { user: row.user },
  );
  prompt.cancelAsked = row.cancelAskedAtMs !== null;
  if (row.jobId !== null) {
    board.employ(prompt, row.jobId);
    prompt.status = 'queued';
  }
  follower.release(prompt);
  return prompt;
}

function takeUp(deps: Deps, row: PromptRow, prompt: LivePrompt): void {
  const { follower, outbox, reconciler, pursuit } = deps;
  if (row.jobId !== null) {
    follower.attach(prompt, { jobId: row.jobId, graph: prompt.graph, targets: prompt.targets });
    follower.begin(prompt);
    if (prompt.cancelAsked) void pursuit.pursue(prompt);
    return;
  }
  const plan = planOfRow(row);
  const told = TOLD[row.state === 'unknown' || row.state === 'outbox' ? row.state : 'submitting'];
  if (plan === undefined) return abandon(deps, prompt, told);
  // Whoever asked for its end does not want it sent once more; it may have been sent already.
  const isOver = told === 'unknown' || prompt.cancelAsked;
  if (isOver) reconciler.take({ prompt, plan, told, isKeyUsed: prompt.cancelAsked });
  else outbox.put({ prompt, plan, told });
}

/** What a client had heard when the process died. */
const TOLD = { submitting: 'unheard', outbox: 'accepted', unknown: 'unknown' } as const;

function abandon(deps: Deps, prompt: LivePrompt, told: 'unheard' | 'accepted' | 'unknown'): void {
  if (told === 'unheard') return void forget(deps, prompt);
  const error = { code: 'credentials_gone', message: GONE, x_exception_type: 'ServiceError' };
  void deps.follower.settle(prompt, { kind: 'failed', error });
}

const GONE =
  'This prompt came with a key of its own. Keys are never stored, and the server was restarted ' +
  'before the job could be submitted. Please submit it again.';
