import type { Hub } from './hub.ts';
import type { PromptJournal } from './prompt-journal.ts';
import type { V1Request } from './routes.ts';
import { isBrowser, isOwnCall } from './visitor.ts';

/**
 * Notes that a client has fetched the results of prompts that have ended: no late socket needs to
 * be told of them. `listed`: the client did not ask for them by their ids.
 */
export type NoteFetched = (
  request: Pick<V1Request, 'ctx' | 'caller'>,
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
