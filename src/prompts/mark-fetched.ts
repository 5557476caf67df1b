import type { IncomingMessage } from 'node:http';
import type { Logger } from '../observability/log.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { PromptSources } from './find-by-prompt-id.ts';
import type { Hub } from '../sockets/hub.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import { isBrowser, isOwnCall } from '../auth/calling-client.ts';

/**
 * Records that a client has fetched the results of ended prompts: late sockets get nothing of them.
 * `listed`: the client did not ask for them by id.
 */
export type MarkFetched = (
  request: { readonly ctx: { readonly req: IncomingMessage }; readonly caller: Caller },
  source: 'by id' | 'listed',
  promptIds: readonly string[],
) => void;

export function createMarkFetched(deps: {
  readonly hub: Pick<Hub, 'discardFetched'>;
  readonly promptEventLog: Pick<PromptEventLog, 'resultFetched'>;
}): MarkFetched {
  return ({ ctx, caller: { user } }, source, promptIds) => {
    if (isOwnCall(ctx.req)) return;
    // A front end lists everything all the time, and is not the client that waits for a result.
    if (source === 'listed' && isBrowser(ctx.req)) return;
    for (const promptId of deps.hub.discardFetched(user, promptIds)) {
      deps.promptEventLog.resultFetched(user, promptId);
    }
  };
}

/**
 * Records that a client has read an ended job through v2, so it has the result of the prompt. Never
 * throws.
 */
export type MarkJobFetched = (fetched: {
  readonly caller: Caller;
  readonly jobId: string;
  readonly request: IncomingMessage;
}) => void;

export function createMarkJobFetched(
  deps: PromptSources & { readonly markFetched: MarkFetched; readonly log: Pick<Logger, 'warn'> },
): MarkJobFetched {
  const { livePrompts, ledger, markFetched, log } = deps;
  async function markJobFetched({
    caller,
    jobId,
    request,
  }: Parameters<MarkJobFetched>[0]): Promise<void> {
    const { user } = caller;
    const prompt = livePrompts.find(user, jobId) ?? (await ledger.prompts.findByJob(user, jobId));
    if (prompt) markFetched({ ctx: { req: request }, caller }, 'by id', [prompt.promptId]);
  }
  return (fetched) => {
    markJobFetched(fetched).catch((error: unknown) => {
      const event = 'socket.fetch_not_noted';
      const { jobId } = fetched;
      log.warn(
        { event, err: error, jobId },
        'could not note a fetched result; a late socket may get it again',
      );
    });
  };
}
