import type { IncomingMessage } from 'node:http';
import type { Caller } from '../protocol/job-api.ts';
import type { PromptPorts } from './ports.ts';
import { isBrowser, isOwnCall } from '../auth/calling-client.ts';

/**
 * Records that a client has fetched the results of ended prompts: sockets that connect later get no
 * frames of them. `listed`: the client did not ask for the prompts by id.
 */
export type MarkFetched = (
  request: { readonly ctx: { readonly req: IncomingMessage }; readonly caller: Caller },
  source: 'by id' | 'listed',
  promptIds: readonly string[],
) => void;

export function createMarkFetched({ frames, records }: PromptPorts): MarkFetched {
  return ({ ctx, caller: { user } }, source, promptIds) => {
    // A `HEAD` request brings no result.
    if (isOwnCall(ctx.req) || ctx.req.method !== 'GET') return;
    // A front end lists all prompts again and again, and is not the client that waits for a result.
    if (source === 'listed' && isBrowser(ctx.req)) return;
    for (const promptId of frames.hub.channels.discardFetched(user, promptIds)) {
      records.eventLog.resultFetched(user, promptId);
    }
  };
}

/**
 * Records that a client has read an ended job through v2 and so has the result of the prompt. Never
 * throws.
 */
export type MarkJobFetched = (fetched: FetchedJob) => void;

type FetchedJob = {
  readonly caller: Caller;
  readonly jobId: string;
  readonly request: IncomingMessage;
};

export function createMarkJobFetched(
  { frames: { livePrompts, log }, records }: PromptPorts,
  markFetched: MarkFetched,
): MarkJobFetched {
  async function markJobFetched({ caller, jobId, request }: FetchedJob): Promise<void> {
    const { user } = caller;
    const prompt = livePrompts.find(user, jobId) ?? (await records.prompts.findByJob(user, jobId));
    if (prompt) markFetched({ ctx: { req: request }, caller }, 'by id', [prompt.promptId]);
  }
  return (fetched) => {
    markJobFetched(fetched).catch((error: unknown) => {
      const facts = { event: 'socket.fetch_not_noted', err: error, jobId: fetched.jobId };
      log.warn(facts, 'could not note a fetched result; a late socket may get it again');
    });
  };
}
