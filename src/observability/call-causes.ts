import { LRUCache } from 'lru-cache';
import { bytesAtMost } from '../lib/lru-size.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { SocketFrame } from './described-frame.ts';

/** The id clients know of the live prompt with this job id or key. */
export type FindPromptId = (user: string, id: string) => string | undefined;

/**
 * The cause of v2 calls: a request, or a prompt. A prompt goes on with the caller of its request, so both are one
 * cause. Subscribers store what they know about a cause in weak maps.
 */
export type CallCause = {
  /** The id that clients know of its prompt, if that is known. */
  promptId?: string;
  /** The list of the v2 calls of a request, until it is answered. */
  v2Calls?: string[] | undefined;
};

/**
 * The property of a request or a caller that holds its cause. An entry of a weak map for each call would keep the
 * whole call in memory until the next full garbage collection.
 */
const CAUSE = Symbol('cause');

type Caused = { [CAUSE]?: CallCause };

const MAX_BYTES = 4 * 1024 * 1024;

/** The causes of v2 calls, and the prompts of callers, jobs and sockets, also of prompts that have ended. */
export class CallCauses {
  readonly #promptIdOf: FindPromptId;
  readonly #promptsByJob = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));
  readonly #promptsBySocket = new LRUCache<string, string>(bytesAtMost(MAX_BYTES));

  constructor(promptIdOf: FindPromptId) {
    this.#promptIdOf = promptIdOf;
  }

  /** Each request has a caller object of its own. */
  causeOf(requestOrCaller: object): CallCause {
    return ((requestOrCaller as Caused)[CAUSE] ??= {});
  }

  /** From now on v2 calls in the name of this very object are caused by the request. */
  linkCaller(caller: Caller, request: object): void {
    (caller as Caused)[CAUSE] = this.causeOf(request);
  }

  /** Finds the prompt of a v2 call by the id of its job or the key of the prompt, or by its cause. */
  promptOf(caller: Caller, id: string | undefined): string | undefined {
    const { user } = caller;
    const found = id && (this.#promptIdOf(user, id) ?? this.#promptsByJob.get(`${user} ${id}`));
    return found || this.causeOf(caller).promptId;
  }

  linkJob(user: string, jobId: string, promptId: string): void {
    this.#promptsByJob.set(`${user} ${jobId}`, promptId);
  }

  /** Binary frames may carry no id: then they are of the prompt of the frame before. */
  promptOfFrame(
    { user, sid, payload }: SocketFrame,
    promptId: string | undefined,
  ): string | undefined {
    const socket = `${user} ${sid}`;
    const isText = typeof payload === 'string';
    const found = promptId ?? (isText ? undefined : this.#promptsBySocket.get(socket));
    if (found !== undefined) this.#promptsBySocket.set(socket, found);
    return found;
  }
}
