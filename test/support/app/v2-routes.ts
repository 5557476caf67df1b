import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { type IncomingHttpHeaders, type IncomingMessage, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import Koa from 'koa';
import { createUploadLimit } from '../../../src/http/upload-limit.ts';
import { createBodyReader } from '../../../src/http/json-body.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import type { FormLimits } from '../../../src/http/received-form.ts';
import { createPublicAddresses } from '../../../src/http/public-address.ts';
import { createV2Routes } from '../../../src/v2/routes.ts';
import type { JobApi } from '../../../src/protocol/job-api.ts';
import { type CallOptions, type Called, call } from '../clients/raw-call.ts';
import { type FakeJobs, fakeJobs } from '../upstreams/fake-jobs.ts';

type V2RouteOptions = Parameters<typeof createV2Routes>[0];

export type V2Answer = Called & { json(): unknown };

export type AskOptions = CallOptions & {
  /** Whose call it is; '' presents no key. */
  readonly user?: string;
};

/** The v2 routes on a socket. */
export type TestV2App<T extends JobApi> = {
  /** Where it is reached. */
  readonly url: string;
  readonly jobs: T;
  readonly failures: unknown[];
  ask(path: string, options?: AskOptions): Promise<V2Answer>;
  /** Opens an event stream. */
  listen(path: string, options?: AskOptions): Promise<EventReader>;
  /** Files left in the spool. */
  spooled(): Promise<string[]>;
  close(): Promise<void>;
};

type TestV2Options = Partial<Omit<V2RouteOptions, 'uploads'>> & {
  readonly rate?: V2RouteOptions['callers']['rate'];
  readonly uploads?: Partial<FormLimits>;
};

export async function createTestV2App(change: TestV2Options = {}): Promise<TestV2App<FakeJobs>> {
  return await createTestV2AppOver(fakeJobs(), change);
}

export async function createTestV2AppOver<T extends JobApi>(
  jobs: T,
  { rate, ...change }: TestV2Options = {},
): Promise<TestV2App<T>> {
  const spoolDir = await mkdtemp(join(tmpdir(), 'holdover-v2-'));
  const failures: unknown[] = [];
  const app = new Koa();
  app.on('error', () => {});
  app.use(
    createV2Routes({
      jobs,
      links: { addresses: createPublicAddresses() },
      callers: {
        identify: (ctx) => (ctx.get('X-User') === '' ? undefined : { user: ctx.get('X-User') }),
        ...(rate && { rate }),
      },
      bodies: createBodyReader({ maxBytes: 64 * 1024 }),
      streams: { cap: 2, keepAliveMs: 60_000 },
      log: Object.assign(silentLogger(), {
        error: (fields: unknown) => void failures.push(fields),
      }),
      ...change,
      uploads: {
        spoolDir,
        maxUploadBytes: 64 * 1024,
        limitUploads: createUploadLimit(),
        ...change.uploads,
      },
    }),
  );
  app.use((ctx) => {
    ctx.body = 'v1';
  });
  const handle = app.callback();
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    jobs,
    failures,
    ask: (path, options) => ask(port, path, options),
    listen: (path, options) => listen(port, path, options),
    spooled: () => readdir(spoolDir),
    async close() {
      server.closeAllConnections();
      server.close();
      await rm(spoolDir, { recursive: true, force: true });
    },
  };
}

async function ask(port: number, path: string, options: AskOptions = {}): Promise<V2Answer> {
  const called = await call(`http://127.0.0.1:${port}`, path, withUser(options));
  return { ...called, json: () => JSON.parse(called.text) as unknown };
}

function withUser({ user = 'anna', ...options }: AskOptions): CallOptions {
  return { ...options, headers: { ...(user !== '' && { 'X-User': user }), ...options.headers } };
}

export type ReadEvent = { readonly event: string; readonly data: unknown };

/** A reader of one event stream. */
export type EventReader = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Comments seen so far. */
  readonly comments: string[];
  next(): Promise<ReadEvent | undefined>;
  /** Everything up to the end of the stream. */
  rest(): Promise<ReadEvent[]>;
  /** Resolves at the next comment. */
  comment(): Promise<string>;
  /** Goes away without a word. */
  leave(): void;
};

async function listen(port: number, path: string, options: AskOptions = {}): Promise<EventReader> {
  const { headers } = withUser(options);
  const outgoing = request({ port, host: '127.0.0.1', path, headers });
  outgoing.on('error', () => {});
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const events: ReadEvent[] = [];
  const comments: string[] = [];
  const parser = createParser({
    onEvent: ({ event = '', data }: EventSourceMessage) =>
      void events.push({ event, data: JSON.parse(data) as unknown }),
    onComment: (text) => void comments.push(text),
  });
  const chunks = response.setEncoding('utf8')[Symbol.asyncIterator]();
  const more = async (): Promise<boolean> => {
    const { value, done } = await chunks.next();
    if (!done) parser.feed(value as string);
    return !done;
  };
  const next = async (): Promise<ReadEvent | undefined> => {
    while (events.length === 0 && (await more()));
    return events.shift();
  };
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    comments,
    next,
    async rest() {
      while (await more());
      return events.splice(0);
    },
    async comment() {
      const seen = comments.length;
      while (comments.length === seen && (await more()));
      return comments[seen] ?? '';
    },
    leave: () => void outgoing.destroy(),
  };
}
