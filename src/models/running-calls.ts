import { type ReplyError, replyError } from './reply.ts';

/** Ceilings for the running calls of one workspace. */
type CallCeilings = { readonly inFlight: number; readonly committedCents: number };

/** A reservation for one running call of a workspace, or why it is refused. */
export type Admission =
  | { readonly ok: true; release(): void }
  | { readonly ok: false; readonly refusal: ReplyError };

/** Where running calls are counted. */
export type RunningCalls = ReturnType<typeof createRunningCalls>;

type Running = { calls: number; cents: number };

/** Counts the running calls of each workspace and what they are committed to pay. */
export function createRunningCalls() {
  const workspaces = new Map<string, Running>();
  return {
    /** The sum the running calls of a workspace may cost, in US cents. */
    committedCents: (workspace: string): number => workspaces.get(workspace)?.cents ?? 0,
    admit(workspace: string, cents: number, ceilings: CallCeilings): Admission {
      const running = workspaces.get(workspace) ?? { calls: 0, cents: 0 };
      const refusal = refuse(running, cents, ceilings);
      if (refusal) return { ok: false, refusal };
      running.calls++;
      running.cents += cents;
      workspaces.set(workspace, running);
      return {
        ok: true,
        release() {
          running.calls--;
          running.cents -= cents;
          if (running.calls === 0) workspaces.delete(workspace);
        },
      };
    },
  };
}

function refuse(running: Running, cents: number, ceilings: CallCeilings): ReplyError | undefined {
  if (running.calls >= ceilings.inFlight) {
    const most = `at most ${ceilings.inFlight} calls of a workspace run at a time`;
    return replyError('concurrency_limit_exceeded', `In-flight limit: ${most}.`);
  }
  const { committedCents: limit } = ceilings;
  if (running.cents + cents <= limit) return undefined;
  const headers = {
    'X-Committed-Spend-Limit': String(limit),
    'X-Committed-Spend-Current': String(running.cents),
    'X-Committed-Spend-Remaining': String(Math.max(0, limit - running.cents)),
  };
  const detail =
    `Committed-spend ceiling: running calls are committed to ${running.cents} of ${limit} cents, ` +
    `and this one costs ${cents}.`;
  return replyError('concurrency_limit_exceeded', detail, { headers });
}
