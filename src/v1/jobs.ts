import type { BodyReader } from '../http/json-body.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type JobView, jobDetail, jobStatus } from '../translate/job-views.ts';
import type { LivePrompts } from './board.ts';
import { readJson } from './body.ts';
import type { Cancel } from './cancel.ts';
import { rulesFor } from './dialect.ts';
import { V1Error, faultOf, plainError, sendJson } from './errors.ts';
import type { MarkFetched } from './fetched.ts';
import { findDone } from './history.ts';
import { listJobs } from './job-list.ts';
import { doneView, liveView } from './job-view.ts';
import { idList, objectBody } from './queue.ts';
import type { V1Request, V1Route } from './routes.ts';

type Deps = {
  readonly cancel: Cancel['cancel'];
  readonly ledger: Ledger;
  readonly livePrompts: LivePrompts;
  readonly bodies: BodyReader;
  readonly markFetched: MarkFetched;
};

/** `/api/jobs…` of newer front ends and `/api/job/{id}/status` of the hosted API. */
export function jobRoutes(deps: Deps): readonly V1Route[] {
  return [
    { method: 'GET', path: '/api/jobs', handle: (request) => listJobs(deps, request) },
    { method: 'GET', path: '/api/jobs/:id', handle: (request) => detail(deps, request) },
    { method: 'POST', path: '/api/jobs/cancel', handle: (request) => cancelMany(deps, request) },
    { method: 'POST', path: '/api/jobs/:id/cancel', handle: (request) => cancelOne(deps, request) },
    { method: 'GET', path: '/api/job/:id/status', handle: (request) => status(deps, request) },
  ];
}

async function detail(deps: Deps, request: V1Request): Promise<void> {
  const { ctx } = request;
  const view = await fetchedView(deps, request);
  if (!view) throw new V1Error(404, faultOf(404, { error: NO_JOB }, NO_JOB));
  sendJson(ctx, jobDetail(view));
}

const NO_JOB = 'Job not found';

async function status(deps: Deps, request: V1Request): Promise<void> {
  const { ctx } = request;
  const view = await fetchedView(deps, request);
  if (!view) throw new V1Error(404, plainError('not_found', NO_JOB));
  sendJson(ctx, jobStatus(view));
}

/** Never a 404: an id nobody knows was not cancelled. */
async function cancelOne(deps: Deps, { ctx, caller, params }: V1Request): Promise<void> {
  const prompt = deps.livePrompts.find(caller.user, params.id ?? '');
  if (prompt) await deps.cancel([prompt], caller);
  sendJson(ctx, { cancelled: prompt !== undefined });
}

async function cancelMany(deps: Deps, { ctx, caller }: V1Request): Promise<void> {
  const body = objectBody(await readJson(ctx, deps.bodies));
  const ids = idList(body.job_ids, 'job_ids');
  const prompts = ids.flatMap((id) => deps.livePrompts.find(caller.user, id) ?? []);
  await deps.cancel(prompts, caller);
  sendJson(ctx, { cancelled: prompts.length > 0 });
}

async function fetchedView(deps: Deps, request: V1Request): Promise<JobView | undefined> {
  const view = await find(deps, request);
  if (view?.entry) deps.markFetched(request, 'by id', [view.submitted.promptId]);
  return view;
}

async function find(
  deps: Deps,
  { ctx, caller: { user }, params: { id = '' } }: V1Request,
): Promise<JobView | undefined> {
  const live = deps.livePrompts.find(user, id);
  if (live) return liveView(live);
  const done = await findDone(deps.ledger, user, id);
  return done && doneView(done, rulesFor(ctx).exceptionType);
}
