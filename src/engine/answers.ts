import { setImmediate as nextTurn } from 'node:timers/promises';
import { reached } from '../crash-point.ts';
import type { Holds } from './holds.ts';
import type { LiveJob } from './live.ts';
import type { Outputs } from './outputs.ts';
import type { Question, Questions } from './protocol.ts';

/** Answers what a worker asks on behalf of a job. */
export type Answer = <K extends keyof Questions>(
  job: LiveJob,
  question: Extract<Question, { kind: K }>,
) => Promise<Questions[K]['answer']>;

type Answers = {
  readonly [K in keyof Questions]: (
    job: LiveJob,
    ask: Questions[K]['ask'],
  ) => Promise<Questions[K]['answer']>;
};

/** The answers are given by the main thread: only there do all jobs of a user meet. */
export function createAnswer({
  outputs,
  holds,
  begin,
}: {
  readonly outputs: Outputs;
  readonly holds: Holds;
  /** Puts on record that a node of this job begins. */
  readonly begin: (job: LiveJob) => Promise<void>;
}): Answer {
  const answers: Answers = {
    begin: async (job) => {
      await begin(job);
      reached('after-run-begin');
      return null;
    },
    save: (job, { nodeId, file }) =>
      outputs.commit({ user: job.user, jobId: job.id, nodeId, file }),
    counter: ({ user, id: jobId }, question) => outputs.nextCounter({ user, jobId }, question),
    alive: (job, wanted) => holds.take(wanted, job.user),
    handled: () => nextTurn(null),
  };
  return (job, question) => answers[question.kind](job, question.ask as never) as never;
}
