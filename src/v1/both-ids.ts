import type { Ledger } from '../ledger/ledger.ts';
import type { Caller, JobApi, Result } from '../wire/jobs.ts';
import type { Board } from './board.ts';

/** The same port, where a job answers to the `prompt_id` its client chose as well as to its own id. */
export function withBothIds(
  jobs: JobApi,
  { board, ledger }: { readonly board: Board; readonly ledger: Pick<Ledger, 'prompts'> },
): JobApi {
  async function jobIdOf(user: string, promptId: string): Promise<string | undefined> {
    const prompt = board.find(user, promptId) ?? (await ledger.prompts.find(user, promptId));
    return prompt?.jobId ?? undefined;
  }

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
