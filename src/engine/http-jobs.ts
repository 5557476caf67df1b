import type Koa from 'koa';
import { type Caller, type Result, type V2Error, ok, refuse } from '../wire/jobs.ts';
import type { Json } from '../wire/json.ts';
import { readIdempotencyKey, readObject } from './http-body.ts';
import { listed, readListQuery } from './http-list.ts';
import { type FirstStreams, createFirstStreams } from './first-streams.ts';
import type { Handler, Reply, V2Deps } from './http-reply.ts';
import { readSubmission } from './http-submit.ts';
import { streamEvents } from './sse.ts';

const DEFAULT_STREAM_CAP = 64;
const DEFAULT_HEARTBEAT_MS = 15_000;
const STREAM_RETRY_S = 5;

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // Proxies that compress or buffer would hold events back.
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
};

/** The job half of the contract, by operation. */
export function createJobHandlers(deps: V2Deps): { readonly [name in JobOperation]: Handler } {
  const { jobs, bodies } = deps;
  const firstStreams = createFirstStreams(jobs);
  return {
    async submit({ ctx, caller, links }) {
      const key = readIdempotencyKey(ctx);
      if (!key.ok) return key;
      const body = await readObject(ctx, bodies, 'workflow');
      if (!body.ok) return body;
      const request = readSubmission(body.value, key.value.idempotencyKey);
      if (!request.ok) return request;
      const made = await jobs.submit(caller, request.value);
      const { res: response } = ctx;
      if (made.ok) {
        await firstStreams.keep(caller, made.value.id);
        await deps.onSubmit?.({ caller, request: request.value, job: made.value, response });
      }
      return reply(made, links.job, 201);
    },
    async list({ ctx, caller, links }) {
      const query = readListQuery(ctx.querystring);
      if (!query.ok) return query;
      const page = await jobs.list(caller, query.value);
      return reply(page, (value) => ({
        ...value,
        jobs: value.jobs.map((job) => listed(links.job(job))),
      }));
    },
    get: async ({ caller, params, links }) =>
      reply(await jobs.get(caller, idOf(params)), links.job),
    workflow: async ({ caller, params }) => reply(await jobs.workflow(caller, idOf(params)), same),
    cancel: async ({ caller, params, links }) =>
      reply(await jobs.cancel(caller, idOf(params)), links.job),
    /** Nothing here captures logs: a job that exists has none. */
    async logs({ caller, params }) {
      const job = await jobs.get(caller, idOf(params));
      return job.ok ? ok({ status: 204 }) : job;
    },
    events: createEventsHandler(deps, firstStreams),
  };
}

type JobOperation = 'submit' | 'list' | 'get' | 'workflow' | 'cancel' | 'logs' | 'events';

function createEventsHandler(deps: V2Deps, firstStreams: FirstStreams): Handler {
  const { jobs, streamCap = DEFAULT_STREAM_CAP, heartbeatMs = DEFAULT_HEARTBEAT_MS } = deps;
  const open = new Map<string, number>();
  return async ({ ctx, caller, params, links }) => {
    if (ctx.method === 'HEAD') {
      const job = await jobs.get(caller, idOf(params));
      return job.ok ? ok({ status: 200, headers: STREAM_HEADERS }) : job;
    }
    const release = takeStream(open, caller, streamCap);
    if (!release) return tooManyStreams(streamCap);
    const signal = leaving(ctx);
    try {
      const first = firstStreams.take(caller, idOf(params), signal);
      const events = first ? ok(first) : await jobs.events(caller, idOf(params), signal);
      if (!events.ok) return events;
      startStream(ctx);
      await streamEvents(ctx.res, linked(events.value, links.event), { heartbeatMs, signal });
      return ok('sent');
    } finally {
      release();
    }
  };
}

/** One more stream of this caller, or nothing when he has his share; call it when the stream is over. */
function takeStream(
  open: Map<string, number>,
  { user }: Caller,
  cap: number,
): (() => void) | undefined {
  const held = open.get(user) ?? 0;
  if (held >= cap) return undefined;
  open.set(user, held + 1);
  return () => {
    const left = (open.get(user) ?? 1) - 1;
    if (left > 0) open.set(user, left);
    else open.delete(user);
  };
}

function tooManyStreams(cap: number): Result<never> {
  const message = `At most ${cap} event streams may be open at a time; poll the job meanwhile.`;
  return refuse(429, 'too_many_streams', message, { retryAfterSeconds: STREAM_RETRY_S });
}

/** Aborts when the caller goes away. */
function leaving({ res }: Koa.Context): AbortSignal {
  const controller = new AbortController();
  if (res.destroyed) controller.abort();
  res.once('close', () => controller.abort());
  // Writing to a socket that has just gone is no news.
  res.on('error', () => {});
  return controller.signal;
}

function startStream(ctx: Koa.Context): void {
  ctx.respond = false;
  ctx.status = 200;
  ctx.set(STREAM_HEADERS);
  ctx.res.flushHeaders();
}

async function* linked<T>(events: AsyncIterable<T>, link: (event: T) => T): AsyncGenerator<T> {
  for await (const event of events) yield link(event);
}

function reply<T>(
  answer: Result<T>,
  show: (value: T) => unknown,
  status = 200,
): { ok: false; error: V2Error } | Result<Reply> {
  return answer.ok ? ok({ status, json: show(answer.value) as Json }) : answer;
}

function same<T>(value: T): T {
  return value;
}

function idOf({ id = '' }: { readonly [name: string]: string }): string {
  return id;
}
