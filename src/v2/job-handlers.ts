import { disconnectSignal } from '../http/client-connection.ts';
import { systemClock } from '../lib/clock.ts';
import type Koa from 'koa';
import { ByUser } from '../sockets/by-user.ts';
import { type JobEvent, type Result, ok, refuse } from '../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../protocol/v2.ts';
import { readIdempotencyKey, readObject } from './read-body.ts';
import { toListItem, readListQuery } from './list-query.ts';
import { EarlyEvents } from './early-events.ts';
import { jobAtStatus } from './job-at-status.ts';
import type { LinkRewriter } from './link-rewriter.ts';
import { type Handler, type Handlers, type V2RouteOptions, replyWith } from './reply.ts';
import { readJobSubmission } from './read-submission.ts';
import { streamEvents } from './event-stream.ts';

const DEFAULT_STREAM_CAP = 64;
const STREAM_RETRY_S = 5;

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // Proxies that compress or buffer would delay events.
  'Cache-Control': 'private, no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** The handlers of the job operations, by the names of their routes. */
export function createJobHandlers(options: V2RouteOptions): Handlers {
  const { jobs } = options;
  const earlyEvents = new EarlyEvents(jobs, options.streams?.clock);
  return {
    'POST /jobs': createSubmitHandler(options, earlyEvents),
    async 'GET /jobs'({ ctx, caller, links }) {
      const query = readListQuery(ctx.querystring);
      if (!query.ok) return query;
      const page = await jobs.list(caller, query.value);
      return replyWith(page, (value) => ({
        ...value,
        jobs: value.jobs.map((job) => toListItem(links.job(job))),
      }));
    },
    async 'GET /jobs/:id'({ ctx, caller, params: { id = '' }, links }) {
      const job = await jobs.get(caller, id);
      if (job.ok && IS_TERMINAL[job.value.status]) {
        const jobId = job.value.id;
        earlyEvents.forget(caller, { jobId, reader: readerOf(ctx) });
        options.observer?.onFetch({ caller, jobId, request: ctx.req });
      }
      return replyWith(job, links.job);
    },
    'GET /jobs/:id/workflow': async ({ caller, params: { id = '' } }) =>
      replyWith(await jobs.workflow(caller, id), (workflow) => workflow),
    'POST /jobs/:id/cancel': async ({ caller, params: { id = '' }, links }) =>
      replyWith(await jobs.cancel(caller, id), links.job),
    /** The embedded engine captures no logs, so the list of every job is empty. */
    async 'GET /jobs/:id/logs'({ caller, params: { id = '' } }) {
      const job = await jobs.get(caller, id);
      return job.ok ? ok({ status: 204 }) : job;
    },
    'GET /jobs/:id/events': createEventsHandler(options, earlyEvents),
  };
}

function createSubmitHandler(options: V2RouteOptions, earlyEvents: EarlyEvents): Handler {
  const { jobs, bodies, observer } = options;
  return async ({ ctx, caller, links }) => {
    const key = readIdempotencyKey(ctx);
    if (!key.ok) return key;
    const body = await readObject(ctx, bodies, 'workflow');
    if (!body.ok) return body;
    const request = readJobSubmission(body.value, key.value.idempotencyKey);
    if (!request.ok) return request;
    const submitted = await jobs.submit(caller, request.value);
    if (submitted.ok) {
      const { value: job } = submitted;
      await earlyEvents.open(caller, job.id);
      await observer?.onSubmit({ caller, request: request.value, job, response: ctx.res });
    }
    return replyWith(submitted, links.job, 201);
  };
}

function createEventsHandler(options: V2RouteOptions, earlyEvents: EarlyEvents): Handler {
  const { jobs, streams = {} } = options;
  const { cap = DEFAULT_STREAM_CAP, keepAliveMs, clock = systemClock } = streams;
  const open = new ByUser<Koa.Context>();
  return async ({ ctx, caller, params: { id = '' }, links }) => {
    if (ctx.method === 'HEAD') {
      const job = await jobs.get(caller, id);
      return job.ok ? ok({ status: 200, headers: STREAM_HEADERS }) : job;
    }
    if (open.of(caller.user).size >= cap) return tooManyStreams(cap);
    open.add(caller.user, ctx);
    const signal = disconnectSignal(ctx.res);
    try {
      const recipient = { jobId: id, reader: readerOf(ctx) };
      const first = earlyEvents.take(caller, recipient, signal);
      const events = first ? ok(first) : await jobs.events(caller, id, signal);
      if (!events.ok) return events;
      startStream(ctx);
      const job = (): Promise<Result<Job>> => jobs.get(caller, id);
      await streamEvents(ctx.res, clientEvents(events.value, { links, job }), {
        keepAliveMs,
        clock,
        signal,
      });
      return ok('sent');
    } finally {
      open.delete(caller.user, ctx);
    }
  };
}

function tooManyStreams(cap: number): Result<never> {
  const message = `At most ${cap} event streams may be open at a time; poll the job meanwhile.`;
  return refuse(429, 'too_many_streams', message, { retryAfterSeconds: STREAM_RETRY_S });
}

function startStream(ctx: Koa.Context): void {
  ctx.respond = false;
  ctx.status = 200;
  ctx.set(STREAM_HEADERS);
  ctx.res.flushHeaders();
}

/** Yields the events as a client gets them: each status has its job, if the job can be read. */
async function* clientEvents(
  events: AsyncIterable<JobEvent>,
  { links, job }: { readonly links: LinkRewriter; readonly job: () => Promise<Result<Job>> },
): AsyncGenerator<JobEvent> {
  for await (const event of events) {
    if (event.event !== 'status') {
      yield links.event(event);
      continue;
    }
    // When the job cannot be read now, the event has only its status. Its reader then asks for the
    // job.
    const read = await job().catch(() => undefined);
    const shown = read?.ok ? jobAtStatus(read.value, event.data.status) : undefined;
    yield shown ? { ...event, data: { ...event.data, job: links.job(shown) } } : event;
  }
}

/** A Holdover in front of this one follows a job as well as its clients do. */
function readerOf(ctx: Koa.Context): 'client' | 'holdover' {
  return ctx.get('User-Agent') === 'holdover' ? 'holdover' : 'client';
}
