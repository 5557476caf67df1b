import { LRUCache } from 'lru-cache';
import type { SocketFrame } from '../../observability/described-frame.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { atMost } from '../../lib/lru-size.ts';

/** The id clients know of the live prompt with this job id or key. */
export type FindPromptId = (user: string, id: string) => string | undefined;

const MAX_PROMPTS = 5000;

/** Remembers which prompt a job, a caller or a socket is about. */
export function createTrafficLinks(promptIdOf: FindPromptId) {
  const promptsByCaller = new WeakMap<Caller, string>();
  const promptsByJob = new LRUCache<string, string>(atMost(MAX_PROMPTS));
  const submissions = new LRUCache<string, number>(atMost(MAX_PROMPTS));
  const lastV2 = new LRUCache<string, number>(atMost(MAX_PROMPTS));
  const lastPrompts = new LRUCache<string, string>(atMost(MAX_PROMPTS));
  return {
    promptOf(caller: Caller, id: string | undefined): string | undefined {
      const { user } = caller;
      const found = id && (promptIdOf(user, id) ?? promptsByJob.get(`${user} ${id}`));
      return found || promptsByCaller.get(caller);
    },
    linkJob: (user: string, jobId: string, promptId: string) =>
      void promptsByJob.set(`${user} ${jobId}`, promptId),
    setSubmission(caller: Caller, promptId: string, id: number): void {
      promptsByCaller.set(caller, promptId);
      submissions.set(`${caller.user} ${promptId}`, id);
    },
    submission: (user: string, promptId: string | null) =>
      (promptId !== null && submissions.get(`${user} ${promptId}`)) || null,
    setLastV2(user: string, promptId: string | null, id: number): void {
      if (promptId !== null) lastV2.set(`${user} ${promptId}`, id);
    },
    lastV2: (user: string, promptId: string | undefined) =>
      (promptId !== undefined && lastV2.get(`${user} ${promptId}`)) || null,
    /** Binary frames may carry no id: then they are of the prompt of the frame before. */
    promptOfFrame({ user, sid, payload }: SocketFrame, promptId: string | undefined) {
      const socket = `${user} ${sid}`;
      const found = promptId ?? (typeof payload === 'string' ? undefined : lastPrompts.get(socket));
      if (found !== undefined) lastPrompts.set(socket, found);
      return found;
    },
  };
}
