import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type Koa from 'koa';
import { type Caller, type JobEvent, type Result, ok, refuse } from '../wire/jobs.ts';
import { type Json, stringifyJson } from '../wire/json.ts';

/** Event streams of all callers, so many of each. */
export type Streams = {
  /** Answers with the stream, or with the refusal to send instead. */
  open(
    ctx: Koa.Context,
    caller: Caller,
    subscribe: (signal: AbortSignal) => Promise<Result<AsyncIterable<JobEvent>>>,
  ): Promise<Result<null>>;
};

const RETRY_AFTER_S = 5;

export function createStreams(options: { readonly cap: number; readonly heartbeatMs: number }): Streams {
  const open = new Map<string, number>();
  return {
    async open(ctx, { user }, subscribe) {
      const count = open.get(user) ?? 0;
      if (count >= options.cap) {
        const more = { retryAfterSeconds: RETRY_AFTER_S };
        return refuse(429, 'too_many_streams', `At most ${options.cap} event streams at a time.`, more);
      }
      const abort = new AbortController();
      ctx.res.once('close', () => abort.abort());
      const events = await subscribe(abort.signal);
      if (!events.ok) return events;
      open.set(user, (open.get(user) ?? 0) + 1);
      // The stream outlives this handler; koa must not answer for it.
      ctx.respond = false;
      void pump(ctx.res, events.value, options.heartbeatMs).finally(() => {
        abort.abort();
        open.set(user, (open.get(user) ?? 1) - 1);
        if (open.get(user) === 0) open.delete(user);
      });
      return ok(null);
    },
  };
}

/** Ends after the terminal status; a slow reader is waited for, the feed drops only unread previews. */
async function pump(response: ServerResponse, events: AsyncIterable<JobEvent>, heartbeatMs: number): Promise<void> {
  response.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
  });
  // At once, so that proxies pass the headers on.
  response.write(': keepalive\n\n');
  const heartbeat = setInterval(() => response.write(': keepalive\n\n'), heartbeatMs);
  const gone = once(response, 'close').catch(() => {});
  try {
    for await (const event of events) {
      if (response.destroyed) return;
      if (!response.write(eventText(event))) await Promise.race([once(response, 'drain').catch(() => {}), gone]);
    }
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
}

/** `event:` and one line of JSON; pictures travel as base64. */
export function eventText({ event, data }: JobEvent): string {
  return `event: ${event}\ndata: ${stringifyJson(wireData({ event, data } as JobEvent))}\n\n`;
}

function wireData(event: JobEvent): Json {
  if (event.event !== 'preview') return event.data as unknown as Json;
  const { bytes, ...rest } = event.data;
  return { ...rest, data_base64: Buffer.from(bytes).toString('base64') };
}
