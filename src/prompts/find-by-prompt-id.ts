import type { Caller, JobApi, Result } from '../protocol/job-api.ts';
import type { QueueSources } from './prompts-in-queue.ts';

/** Finds the v2 job of a prompt by the id that the client chose. */
export async function findJobId(
  { livePrompts, ledger }: QueueSources,
  user: string,
  promptId: string,
): Promise<string | undefined> {
  const prompt = livePrompts.find(user, promptId) ?? (await ledger.prompts.find(user, promptId));
  return prompt?.jobId ?? undefined;
}

/**
 * Returns the same port, which finds a job also by the `prompt_id` that its client chose: v2 clients
 * read jobs that v1 clients submitted.
 */
export function withPromptIds(jobs: JobApi, sources: QueueSources): JobApi {
  /** Asks for a job with this id first, then for the job of the prompt with this id. */
  async function askByEitherId<T>(
    { user }: Caller,
    id: string,
    request: (jobId: string) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const answer = await request(id);
    if (answer.ok || answer.error.status !== 404) return answer;
    const jobId = await findJobId(sources, user, id);
    return jobId === undefined || jobId === id ? answer : await request(jobId);
  }
  return {
    ...jobs,
    get: (caller, id) => askByEitherId(caller, id, (jobId) => jobs.get(caller, jobId)),
    workflow: (caller, id) => askByEitherId(caller, id, (jobId) => jobs.workflow(caller, jobId)),
    events: (caller, id, signal) =>
      askByEitherId(caller, id, (jobId) => jobs.events(caller, jobId, signal)),
    cancel: (caller, id) => askByEitherId(caller, id, (jobId) => jobs.cancel(caller, jobId)),
  };
}
