import type { Ledger } from '../ledger/ledger.ts';
import type { Caller, JobApi, Result } from '../wire/jobs.ts';
import type { Board } from './board.ts';

/** The v2 job behind an id that a user's client chose, if there is one. */
export type JobIdOf = (user: string, promptId: string) => Promise<string | undefined>;

/** What prompts are known by. */
export type PromptSources = { readonly board: Board; readonly ledger: Pick<Ledger, 'prompts'> };

/** Looks at the live prompts first. */
export function createJobIdOf({ board, ledger }: PromptSources): JobIdOf {
  return async (user, promptId) => {
    const prompt = board.find(user, promptId) ?? (await ledger.prompts.find(user, promptId));
    return prompt?.jobId ?? undefined;
  };
}

/** The same port, where a job answers to the `prompt_id` its client chose as well as to its own id. */
export function withBothIds(jobs: JobApi, sources: PromptSources): JobApi {
  const jobIdOf = createJobIdOf(sources);

  /** A job of that very id comes first. */
  async function ask<T>(
    { user }: Caller,
    id: string,
    of: (jobId: string) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const answer = await of(id);
    if (answer.ok || answer.error.status !== 404) return answer;
    const jobId = await jobIdOf(user, id);
    return jobId === undefined || jobId === id ? answer : await of(jobId);
  }

  return {
    ...jobs,
    get: (caller, id) => ask(caller, id, (jobId) => jobs.get(caller, jobId)),
    workflow: (caller, id) => ask(caller, id, (jobId) => jobs.workflow(caller, jobId)),
    events: (caller, id, signal) => ask(caller, id, (jobId) => jobs.events(caller, jobId, signal)),
    cancel: (caller, id) => ask(caller, id, (jobId) => jobs.cancel(caller, jobId)),
  };
}
