import type { ServerResponse } from 'node:http';
import type { BodyReader } from '../http/json-body.ts';
import type { Clock } from '../lib/clock.ts';
import type { Accepted, Acceptor } from '../prompts/accept.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import { promptsInQueue } from '../prompts/prompts-in-queue.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Caller } from '../protocol/job-api.ts';
import { readJson } from './routing/body.ts';
import { rulesFor } from '../dialects/dialect.ts';
import { sendJson } from '../dialects/errors.ts';
import { routesFor } from './routes.ts';
import { type SharedCounter, readSubmission, usesCounter } from '../prompts/submission.ts';

/**
 * How long the first frame waits after the answer. Several clients lose a job for good when its
 * frames overtake this answer, or come before they have read it: they register their handlers after
 * that. The original's first frame comes 2 ms later (median of 65 recordings).
 */
const FRAMES_AFTER_ANSWER_MS = 2;

type PromptRouteServices = {
  readonly acceptor: Acceptor;
  readonly livePrompts: LivePrompts;
  readonly ledger: Ledger;
  readonly counter: SharedCounter;
  readonly bodies: BodyReader;
  readonly clock: Clock;
  /** Called with the id that a client gives its new prompt, and the caller that submits it. */
  readonly onSubmission?: ((caller: Caller, promptId: string) => void) | undefined;
};

/** `POST /prompt` submits a workflow; `GET /prompt` returns the number of prompts left. */
export const promptRoutes = routesFor<PromptRouteServices>({
  async 'POST /prompt'(services, { ctx, caller }) {
    // Old graphs have `is_changed: [NaN]`. Validation refuses a null for a number.
    const body = await readJson(ctx, services.bodies, { graphMember: 'prompt', nonFinite: 'null' });
    const count = usesCounter(body) ? await services.counter.next() : 0;
    const { subfolder } = rulesFor(ctx);
    const usageSource = ctx.get('Comfy-Usage-Source');
    const submission = { subfolder, ...readSubmission(body, count, usageSource) };
    // The usage counter reads this.
    ctx.state.clientId = submission.clientId ?? '';
    if (submission.promptId !== undefined) services.onSubmission?.(caller, submission.promptId);
    const accepted = await services.acceptor.accept(caller, submission);
    const { promptId, number, nodeErrors } = accepted;
    ctx.state.promptIds = [promptId];
    releaseAfter(ctx.res, accepted, services.clock);
    sendJson(ctx, { prompt_id: promptId, number, node_errors: nodeErrors });
  },
  async 'GET /prompt'(services, { ctx, caller }) {
    const { length } = await promptsInQueue(services, caller.user);
    sendJson(ctx, { exec_info: { queue_remaining: length } });
  },
});

/**
 * Releases the frames after the answer. The prompt of a client that disconnects runs all the same.
 */
function releaseAfter(response: ServerResponse, { releaseFrames }: Accepted, clock: Clock): void {
  if (response.destroyed) return releaseFrames();
  const releaseLater = (): void => {
    response.off('close', releaseFrames);
    clock.callAfter(FRAMES_AFTER_ANSWER_MS, releaseFrames);
  };
  response.once('close', releaseFrames);
  response.once('finish', releaseLater);
}
