import { LRUCache } from 'lru-cache';
import type { Caller } from '../protocol/job-api.ts';
import type { SocketFrame } from './described-frame.ts';

/** The id clients know of the live prompt with this job id or key. */
export type FindPromptId = (user: string, id: string) => string | undefined;

const MOST = {
  maxSize: 4 * 1024 * 1024,
  /** In bytes: the names are of callers. */
  sizeCalculation: (promptId: string, name: string): number =>
    100 + 2 * (promptId.length + name.length),
} as const;

/** Remembers which prompt a job, a caller or a socket is about, also of prompts that have ended. */
export function createTrafficLinks(promptIdOf: FindPromptId) {
  const promptsByCaller = new WeakMap<Caller, string>();
  const promptsByJob = new LRUCache<string, string>(MOST);
  const promptsBySocket = new LRUCache<string, string>(MOST);
  return {
    promptOf(caller: Caller, id: string | undefined): string | undefined {
      const { user } = caller;
      const found = id && (promptIdOf(user, id) ?? promptsByJob.get(`${user} ${id}`));
      return found || promptsByCaller.get(caller);
    },
    linkJob: (user: string, jobId: string, promptId: string) =>
      void promptsByJob.set(`${user} ${jobId}`, promptId),
    /** Calls in the name of this very object are about this prompt. */
    linkCaller: (caller: Caller, promptId: string) => void promptsByCaller.set(caller, promptId),
    /** Binary frames may carry no id: then they are of the prompt of the frame before. */
    promptOfFrame({ user, sid, payload }: SocketFrame, promptId: string | undefined) {
      const socket = `${user} ${sid}`;
      const isText = typeof payload === 'string';
      const found = promptId ?? (isText ? undefined : promptsBySocket.get(socket));
      if (found !== undefined) promptsBySocket.set(socket, found);
      return found;
    },
  };
}
