import type { Caller, JobApi, Result } from '../protocol/job-api.ts';
import { V2_CALLS, interceptCalls, type PortCall } from './intercepted-port.ts';

/** A call on the port that has come back. */
export type AnsweredCall = {
  /** The v2 operation it stands for. */
  readonly operation: (typeof V2_CALLS)[keyof JobApi];
  /** `broken`: there is no answer, something of our own or of the connection gave way. */
  readonly outcome: 'ok' | '4xx' | '5xx' | 'broken';
  readonly ms: number;
};

type OnCall = (call: AnsweredCall) => void;

/** Lists the v2 calls each v1 call became, for the log and for migration. */
export function createCallLog() {
  const callsByCaller = new WeakMap<object, string[]>();
  return {
    /**
     * From now until `end`, v2 calls in the name of this very object are added to the list: each
     * request has a caller of its own. (A store that follows what is awaited would do without, and
     * on Node 20 makes every promise of the process dearer.)
     */
    begin: (caller: Caller, calls: string[]) => void callsByCaller.set(caller, calls),
    end: (caller: Caller) => void callsByCaller.delete(caller),
    /** The same port; every call is listed, and `onCall` gets its outcome. */
    wrap: (jobs: JobApi, onCall?: OnCall): JobApi =>
      interceptCalls(jobs, (method, call, args) => {
        const operation = V2_CALLS[method];
        if (isCaller(args[0])) callsByCaller.get(args[0])?.push(operation);
        return onCall ? withOutcome(call, operation, onCall)(...args) : call(...args);
      }),
  };
}

/** All operations but `health` have the caller as their first argument. */
function isCaller(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function withOutcome(
  call: PortCall,
  operation: AnsweredCall['operation'],
  onCall: OnCall,
): PortCall {
  return async (...args) => {
    const startedAt = performance.now();
    const report = (outcome: AnsweredCall['outcome']): void =>
      onCall({ operation, outcome, ms: performance.now() - startedAt });
    try {
      const answer = await call(...args);
      report(outcomeOf(answer));
      return answer;
    } catch (error) {
      report('broken');
      throw error;
    }
  };
}

function outcomeOf(answer: Result<unknown>): AnsweredCall['outcome'] {
  if (answer.ok) return 'ok';
  return answer.error.status >= 500 ? '5xx' : '4xx';
}
