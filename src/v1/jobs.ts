import type { BodyReader } from '../http/json-body.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type Json, isJsonObject, stringifyJson } from '../protocol/json.ts';
import { sendJsonPieces } from '../http/json-stream.ts';
import { pythonStr } from '../protocol/python-text.ts';
import { type JobView, jobDetail, jobStatus } from '../translate/job-views.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import { readIdList, readJsonOrUndefined } from './routing/body.ts';
import type { Cancel } from '../prompts/cancel.ts';
import { rulesFor } from '../dialects/dialect.ts';
import {
  V1Error,
  faultOf,
  invalidRequest,
  plainError,
  sendEmpty,
  sendJson,
  textError,
} from '../dialects/errors.ts';
import type { MarkFetched } from '../prompts/mark-fetched.ts';
import { findEndedPrompt, endedView, liveView } from './job-view.ts';
import { listJobs } from './job-list.ts';
import { type V1Request, routesFor } from './routes.ts';

type JobServices = {
  readonly cancel: Cancel;
  readonly ledger: Ledger;
  readonly livePrompts: LivePrompts;
  readonly bodies: BodyReader;
  readonly markFetched: MarkFetched;
};

/** `/api/jobs…` of newer front ends and `/api/job/{id}/status` of the hosted API. */
export const jobRoutes = routesFor<JobServices>({
  'GET /api/jobs': listJobs,
  async 'GET /api/jobs/:id'(services, request) {
    const { ctx } = request;
    const view = await fetchView(services, request);
    if (!view) throw jobNotFound();
    await sendJsonPieces(ctx, [stringifyJson(jobDetail(view))].values());
  },
  /** Deletes a job that has ended, as `POST /history` does. */
  async 'DELETE /api/jobs/:id'(
    { livePrompts, ledger },
    { ctx, caller: { user }, params: { id = '' } },
  ) {
    const ended = await findEndedPrompt(ledger, user, id);
    if (ended) {
      await ledger.prompts.deleteHistory(user, [ended.promptId]);
      return sendEmpty(ctx, 204);
    }
    if (!livePrompts.find(user, id)) throw jobNotFound();
    throw new V1Error(409, plainError('job_not_ended', 'The job has not ended: cancel it first.'));
  },
  async 'POST /api/jobs/cancel'(services, { ctx, caller }) {
    const namesKnown = rulesFor(ctx).jobCancel === 'known-ids';
    const body = await readJsonOrUndefined(ctx, services.bodies);
    const ids = namesKnown ? readSomeIds(body) : await readJobIds(services, caller.user, body);
    if (namesKnown) await requireKnown(services, caller.user, ids);
    const found = ids.flatMap((id) => services.livePrompts.find(caller.user, id) ?? []);
    // A prompt may be named by its own id and by the id of its job.
    const prompts = [...new Set(found)];
    const cancelledIds = prompts.map(({ promptId }) => promptId);
    ctx.state.promptIds = cancelledIds;
    await services.cancel(prompts, caller);
    sendJson(ctx, { cancelled: namesKnown ? cancelledIds : prompts.length > 0 });
  },
  /**
   * Cancels one job. For an unknown id the answer is `cancelled: false`; the hosted service answers
   * that the id is unknown.
   */
  async 'POST /api/jobs/:id/cancel'(services, { ctx, caller, params }) {
    const { id = '' } = params;
    const prompt = services.livePrompts.find(caller.user, id);
    if (!prompt && rulesFor(ctx).jobCancel === 'known-ids')
      await requireKnown(services, caller.user, [id]);
    if (prompt) await services.cancel([prompt], caller);
    sendJson(ctx, { cancelled: prompt !== undefined });
  },
  async 'GET /api/job/:id/status'(services, request) {
    const { ctx } = request;
    const view = await fetchView(services, request);
    if (!view) throw new V1Error(404, plainError('not_found', JOB_NOT_FOUND));
    sendJson(ctx, jobStatus(view));
  },
});

const JOB_NOT_FOUND = 'Job not found';

function jobNotFound(): V1Error {
  return textError(404, JOB_NOT_FOUND);
}

/** The most jobs that the hosted service cancels in one call. */
const MAX_HOSTED_IDS = 100;

function readSomeIds(body: Json | undefined): readonly string[] {
  const value = isJsonObject(body) ? body.job_ids : undefined;
  const ids = Array.isArray(value) ? readIdList(value, 'job_ids') : [];
  if (ids.length > 0 && ids.length <= MAX_HOSTED_IDS) return ids;
  throw invalidRequest(`"job_ids" must be a list of 1 to ${MAX_HOSTED_IDS} ids.`);
}

/**
 * Reads the ids of a local call. The original takes only UUIDs; an id of another form that a client
 * gave its prompt is taken, too.
 */
async function readJobIds(
  services: JobServices,
  user: string,
  body: Json | undefined,
): Promise<readonly string[]> {
  if (body === undefined) throw textError(400, 'Request body must be valid JSON');
  const value = isJsonObject(body) ? body.job_ids : undefined;
  if (!Array.isArray(value)) throw textError(400, 'job_ids must be a list');
  const ids = readIdList(
    value.filter((id) => typeof id === 'string'),
    'job_ids',
  );
  const invalid: string[] = [];
  for (const id of value as readonly Json[])
    if (typeof id !== 'string') invalid.push(pythonStr(id));
    else if (!UUID.test(id) && !(await isKnownJob(services, user, id))) invalid.push(id);
  if (invalid.length === 0) return ids;
  const error = 'job_ids contains invalid id(s)';
  throw new V1Error(400, faultOf(400, { error, invalid_ids: invalid }, error));
}

const UUID = /^[\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}$/;

/** Refuses the call when one of the ids names no job. Then nothing is cancelled. */
async function requireKnown(
  services: JobServices,
  user: string,
  ids: readonly string[],
): Promise<void> {
  for (const id of ids) if (!(await isKnownJob(services, user, id))) throw jobNotFound();
}

async function isKnownJob(
  { livePrompts, ledger }: JobServices,
  user: string,
  id: string,
): Promise<boolean> {
  const found = livePrompts.find(user, id) ?? (await findEndedPrompt(ledger, user, id));
  return found !== undefined;
}

async function fetchView(services: JobServices, request: V1Request): Promise<JobView | undefined> {
  const view = await findView(services, request);
  if (view?.entry) services.markFetched(request, 'by id', [view.submitted.promptId]);
  return view;
}

async function findView(
  services: JobServices,
  { ctx, caller: { user }, params: { id = '' } }: V1Request,
): Promise<JobView | undefined> {
  const livePrompt = services.livePrompts.find(user, id);
  if (livePrompt && !livePrompt.isEnding) return liveView(livePrompt);
  // `/history` shows the prompt already.
  const ended = await findEndedPrompt(services.ledger, user, id);
  if (ended) return endedView(ended, rulesFor(ctx).results);
  return livePrompt && liveView(livePrompt);
}
