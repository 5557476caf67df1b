import type { IncomingMessage } from 'node:http';
import type { Logger } from '../telemetry.ts';
import type { Caller } from '../wire/jobs.ts';
import type { PromptSources } from './both-ids.ts';
import type { Hub } from './hub.ts';
import type { PromptJournal } from './prompt-journal.ts';
import type { V1Request } from './routes.ts';
import { isBrowser, isOwnCall } from './visitor.ts';

/**
 * Notes that a client has fetched the results of prompts that have ended: no late socket needs to
 * be told of them. `listed`: the client did not ask for them by their ids.
 */
export type NoteFetched = (
  request: { readonly ctx: Pick<V1Request['ctx'], 'req'>; readonly caller: Caller },
  how: 'by id' | 'listed',
  promptIds: readonly string[],
) => void;

export function createNoteFetched(deps: {
  readonly hub: Pick<Hub, 'fetched'>;
  readonly journal: Pick<PromptJournal, 'fetched'>;
}): NoteFetched {
  return ({ ctx, caller: { user } }, how, promptIds) => {
    if (isOwnCall(ctx.req)) return;
    // A front end lists everything all the time, and is not the client that waits for it.
    if (how === 'listed' && isBrowser(ctx.req)) return;
    for (const promptId of deps.hub.fetched(user, promptIds)) {
      deps.journal.fetched(user, promptId);
    }
  };
}

/** Notes that a client has read a job that is over through v2: it has the result of its prompt. Never throws. */
export type NoteJobFetched = (fetched: {
  readonly caller: Caller;
  readonly jobId: string;
  readonly request: IncomingMessage;
}) => void;

export function createNoteJobFetched(
  deps: PromptSources & { readonly noteFetched: NoteFetched; readonly log: Pick<Logger, 'warn'> },
): NoteJobFetched {
  const { board, ledger, noteFetched, log } = deps;
  async function note({ caller, jobId, request }: Parameters<NoteJobFetched>[0]): Promise<void> {
    const { user } = caller;
    const prompt = board.find(user, jobId) ?? (await ledger.prompts.findByJob(user, jobId));
    if (prompt) noteFetched({ ctx: { req: request }, caller }, 'by id', [prompt.promptId]);
  }
  return (fetched) => {
    note(fetched).catch((error: unknown) => {
      const event = 'socket.fetch_not_noted';
      const { jobId } = fetched;
      log.warn(
        { event, err: error, jobId },
        'a late socket may be told of a result that was fetched',
      );
    });
  };
}
