import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  createServer,
  request,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import Koa from 'koa';
import { createUploadLimit } from '../../../src/http/upload-limit.ts';
import { createBodyReader } from '../../../src/http/json-body.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { createPublicAddresses } from '../../../src/http/public-address.ts';
import { createV2Routes } from '../../../src/v2/routes.ts';
import type { JobApi } from '../../../src/protocol/job-api.ts';
import { type FakeJobs, fakeJobs } from '../upstreams/fake-jobs.ts';

type V2RouteOptions = Parameters<typeof createV2Routes>[0];

export type V2Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  json(): unknown;
};

export type AskOptions = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
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

export async function createTestV2App(
  change: Partial<V2RouteOptions> = {},
): Promise<TestV2App<FakeJobs>> {
  return await createTestV2AppOver(fakeJobs(), change);
}

export async function createTestV2AppOver<T extends JobApi>(
  jobs: T,
  change: Partial<V2RouteOptions> = {},
): Promise<TestV2App<T>> {
  const spoolDir = await mkdtemp(join(tmpdir(), 'holdover-v2-'));
  const failures: unknown[] = [];
  const app = new Koa();
  app.on('error', () => {});
  app.use(
    createV2Routes({
      jobs,
      spoolDir,
      addresses: createPublicAddresses(),
      identify: (ctx) => (ctx.get('X-User') === '' ? undefined : { user: ctx.get('X-User') }),
      maxUploadBytes: 64 * 1024,
      bodies: createBodyReader({ maxBytes: 64 * 1024 }),
      limitUploads: createUploadLimit(),
      streamCap: 2,
      keepAliveMs: 60_000,
      log: Object.assign(silentLogger(), {
        error: (fields: unknown) => void failures.push(fields),
      }),
      ...change,
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
  const response = await send(port, path, options);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const { statusCode = 0, headers } = response;
  return { status: statusCode, headers, body, json: () => JSON.parse(body.toString()) as unknown };
}

async function send(
  port: number,
  path: string,
  options: AskOptions,
): Promise<IncomingMessage & { req: ClientRequest }> {
  const { method = 'GET', body, user = 'anna' } = options;
  const headers = {
    ...(user !== '' && { 'X-User': user }),
    ...(body !== undefined &&
      !options.headers?.['Transfer-Encoding'] && {
        'Content-Length': String(Buffer.byteLength(body)),
      }),
    ...options.headers,
  };
  const outgoing = request({ port, host: '127.0.0.1', path, method, headers });
  outgoing.on('error', () => {});
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [
    IncomingMessage & { req: ClientRequest },
  ];
  return response;
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
  const response = await send(port, path, options);
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
    leave: () => void response.req.destroy(),
  };
}
