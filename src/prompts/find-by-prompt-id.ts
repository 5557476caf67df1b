import type { Ledger } from '../ledger/ledger.ts';
import type { Caller, JobApi, Result } from '../protocol/job-api.ts';
import type { LivePrompts } from './live-prompts.ts';

/** Finds the v2 job of a prompt by the id that the client chose. */
export type FindJobId = (user: string, promptId: string) => Promise<string | undefined>;

/** The places where prompts are looked up. */
type PromptSources = {
  readonly livePrompts: LivePrompts;
  readonly ledger: Ledger;
};

/** Creates a function that searches the live prompts first, then the ledger. */
export function createFindJobId({ livePrompts, ledger }: PromptSources): FindJobId {
  return async (user, promptId) => {
    const prompt = livePrompts.find(user, promptId) ?? (await ledger.prompts.find(user, promptId));
    return prompt?.jobId ?? undefined;
  };
}

/**
 * Returns the same port, which finds a job also by the `prompt_id` that its client chose: v2 clients
 * read jobs that v1 clients submitted.
 */
export function withPromptIds(jobs: JobApi, findJobId: FindJobId): JobApi {
  /** Asks for a job with this id first, then for the job of the prompt with this id. */
  async function askByEitherId<T>(
    { user }: Caller,
    id: string,
    request: (jobId: string) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const answer = await request(id);
    if (answer.ok || answer.error.status !== 404) return answer;
    const jobId = await findJobId(user, id);
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
