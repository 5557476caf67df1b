import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export type Recorded = {
  readonly route: Route | 'unknown';
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  readonly atMs: number;
};

export type Route =
  | 'submit'
  | 'list'
  | 'get'
  | 'workflow'
  | 'events'
  | 'cancel'
  | 'upload'
  | 'fromHash'
  | 'byHash'
  | 'asset'
  | 'content'
  | 'health';

export type WireJob = { id: string; status: string; [field: string]: any };

/** One request being answered, with the means to answer it badly. */
export type Exchange = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: Buffer;
  /** The id in the path. */
  readonly id: string;
  readonly server: HostileV2;
  readonly json: (status: number, value: unknown, headers?: Record<string, string>) => void;
  /** What an honest server would do. */
  readonly honestly: () => Promise<void>;
};

export type Hook = (exchange: Exchange) => unknown;

export type HostileV2 = {
  readonly url: string;
  readonly origin: string;
  readonly journal: Recorded[];
  readonly jobs: Map<string, WireJob>;
  readonly blobs: Map<string, Buffer>;
  /** Next requests of a route are answered by these, one each; later ones honestly. */
  once(route: Route, ...hooks: Hook[]): void;
  /** All requests of a route. */
  always(route: Route, hook: Hook): void;
  requests(route: Route): Recorded[];
  /** Jobs an honest submission would have made. */
  addJob(fields?: Partial<WireJob>): WireJob;
  /** Changes a job; honest streams of it say so. */
  change(id: string, fields: Partial<WireJob>): void;
  /** Idempotency keys that are used up. */
  readonly keys: Set<string>;
  readonly streams: { open: number; most: number };
  readonly connections: () => number;
  /** What went wrong in the hooks themselves. */
  readonly failures: unknown[];
  /** Routes answered before the body is read. */
  readonly hasty: Set<Route>;
  close(): Promise<void>;
};

const ROUTES: readonly (readonly [Route, string, RegExp])[] = [
  ['submit', 'POST', /^\/jobs$/],
  ['list', 'GET', /^\/jobs(?:\?.*)?$/],
  ['get', 'GET', /^\/jobs\/([^/?]+)$/],
  ['workflow', 'GET', /^\/jobs\/([^/?]+)\/workflow$/],
  ['events', 'GET', /^\/jobs\/([^/?]+)\/events$/],
  ['cancel', 'POST', /^\/jobs\/([^/?]+)\/cancel$/],
  ['upload', 'POST', /^\/assets$/],
  ['fromHash', 'POST', /^\/assets\/from-hash$/],
  ['byHash', 'HEAD', /^\/assets\/by-hash\/([^/?]+)$/],
  ['content', 'GET', /^\/assets\/([^/?]+)\/content$/],
  ['asset', 'GET', /^\/assets\/([^/?]+)$/],
  ['health', 'GET', /^\/health$/],
];

const TERMINAL = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** A v2 server over real sockets that does what it is told, and is honest where it is told nothing. */
export async function openHostileV2(options: { readonly mount?: string } = {}): Promise<HostileV2> {
  const { mount = '' } = options;
  const prefix = `${mount}/api/v2`;
  const journal: Recorded[] = [];
  const jobs = new Map<string, WireJob>();
  const blobs = new Map<string, Buffer>();
  const keys = new Set<string>();
  const queues = new Map<Route, Hook[]>();
  const standing = new Map<Route, Hook>();
  const streams = { open: 0, most: 0 };
  const sockets = new Set<Socket>();
  const failures: unknown[] = [];

  const server = createServer((req, res) => {
    serve(req, res).catch((failure: unknown) => {
      failures.push(failure);
      res.destroy();
    });
  });
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url ?? '';
    const inside = path.startsWith(prefix) ? path.slice(prefix.length) : '?';
    const found = ROUTES.find(([, method, shape]) => method === req.method && shape.test(inside));
    const id = decodeURIComponent(found?.[2].exec(inside)?.[1] ?? '');
    const hook = found && (queues.get(found[0])?.shift() ?? standing.get(found[0]));
    const body = found && self.hasty.has(found[0]) ? Buffer.alloc(0) : await readAll(req);
    const headers = req.headers as Recorded['headers'];
    const route = found?.[0] ?? 'unknown';
    journal.push({ route, method: req.method ?? '', path, headers, body, atMs: Date.now() });
    const json: Exchange['json'] = (status, value, more = {}) => {
      res.writeHead(status, { 'Content-Type': 'application/json', ...more });
      res.end(JSON.stringify(value));
    };
    const honestly = async (): Promise<void> => {
      if (!found) return json(404, error('not_found'));
      await honest[found[0]]({ req, res, body, id, server: self, json, honestly });
    };
    const exchange: Exchange = { req, res, body, id, server: self, json, honestly };
    await (hook ? hook(exchange) : honestly());
  }

  const honest: { readonly [name in Route]: Hook } = {
    submit({ req, body, json }) {
      const key = String(req.headers['idempotency-key'] ?? '');
      if (keys.has(key)) return json(422, error('idempotency_key_reuse'));
      keys.add(key);
      const { workflow, metadata } = JSON.parse(body.toString()) as Record<string, unknown>;
      json(201, shown(self.addJob({ workflow, ...(metadata !== undefined && { metadata }) })));
    },
    list: ({ json }) => json(200, { jobs: [...jobs.values()].toReversed().map(shown) }),
    get: ({ id, json }) => answerJob(jobs.get(id), json),
    workflow({ id, json }) {
      const job = jobs.get(id);
      if (!job) return json(404, error('not_found'));
      json(200, { workflow: job['workflow'], format: 'api' });
    },
    async events({ id, res, json }) {
      const job = jobs.get(id);
      if (!job) return json(404, error('job_not_found'));
      startSse(res);
      for (let said = ''; !res.destroyed; await delay(5)) {
        if (said !== job.status) res.write(frame('status', { status: job.status }));
        said = job.status;
        if (TERMINAL.has(said)) return void res.end();
      }
    },
    cancel({ id, json }) {
      const job = jobs.get(id);
      if (job && !TERMINAL.has(job.status)) job.status = 'canceled';
      answerJob(job, json);
    },
    upload({ body, json }) {
      const text = body.toString('latin1');
      const hash = /name="expected_hash"\r\n\r\n([^\r]+)/.exec(text)?.[1] ?? randomUUID();
      blobs.set(hash, body);
      json(201, { ...ASSET, id: randomUUID(), hash });
    },
    fromHash({ body, json }) {
      const { hash, file_path } = JSON.parse(body.toString()) as {
        hash: string;
        file_path: string;
      };
      if (!blobs.has(hash)) return json(404, error('blob_not_found'));
      json(201, { ...ASSET, id: randomUUID(), hash, file_path });
    },
    byHash({ id, res }) {
      res.writeHead(blobs.has(id) ? 200 : 404);
      res.end();
    },
    asset: ({ id, json }) => json(200, { ...ASSET, id }),
    content({ res }) {
      res.writeHead(200, { 'Content-Type': 'image/png', 'Content-Length': '10' });
      res.end('0123456789');
    },
    health: ({ json }) => json(200, { status: 'healthy', upstream: 'http://127.0.0.1:8188' }),
  };

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const shown = (job: WireJob): object => {
    const { workflow: _workflow, ...rest } = job;
    return rest;
  };
  const answerJob = (job: WireJob | undefined, json: Exchange['json']): void =>
    job ? json(200, shown(job)) : json(404, error('job_not_found'));

  const self: HostileV2 = {
    url: origin + mount,
    origin,
    journal,
    jobs,
    blobs,
    keys,
    streams,
    connections: () => sockets.size,
    failures,
    hasty: new Set(),
    once: (route, ...hooks) => void queues.set(route, [...(queues.get(route) ?? []), ...hooks]),
    always: (route, hook) => void standing.set(route, hook),
    requests: (route) => journal.filter((request) => request.route === route),
    addJob(fields = {}) {
      const id = fields.id ?? randomUUID();
      const link = `${prefix}/jobs/${encodeURIComponent(id)}`;
      const job: WireJob = {
        status: 'queued',
        created_at: new Date().toISOString(),
        started_at: null,
        completed_at: null,
        expires_at: new Date(Date.now() + 86_400_000).toISOString(),
        queue_position: null,
        progress: null,
        outputs: [],
        error: null,
        urls: { self: link, events: `${link}/events`, cancel: `${link}/cancel` },
        ...fields,
        id,
      };
      jobs.set(id, job);
      return job;
    },
    change: (id, fields) => void Object.assign(jobs.get(id) ?? {}, fields),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return self;
}

const ASSET = {
  hash: null,
  size_bytes: 10,
  content_type: 'image/png',
  created_at: '2026-01-01T00:00:00.000Z',
  url: '/x',
  url_expires_at: '2026-01-02T00:00:00.000Z',
};

/** An output as the servers write them. */
export function output(fields: object = {}): object {
  return { ...ASSET, node_id: '9', name: 'a.png', type: 'image', id: 'out-1', ...fields };
}

export function error(code: string, message = `refused: ${code}`, details: unknown = null): object {
  return { error: { code, message, details } };
}

export function frame(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

export function startSse(res: ServerResponse): void {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  res.flushHeaders();
}

/** The faults, by name. */
export const fault = {
  refuse:
    (status: number, code: string, headers: Record<string, string> = {}): Hook =>
    ({ json }) =>
      json(status, error(code), headers),
  /** A page where the contract wants JSON or events. */
  html:
    (status = 200): Hook =>
    ({ res }) => {
      res.writeHead(status, { 'Content-Type': 'text/html' });
      res.end('<html>please log in</html>');
    },
  /** Closes with a reset; whatever was done stays done. */
  reset:
    (): Hook =>
    ({ req }) =>
      void req.socket.resetAndDestroy(),
  /** Never answers. */
  hang: (): Hook => () => {},
  late:
    (ms: number, then: Hook = (exchange) => exchange.honestly()): Hook =>
    async (exchange) => {
      await delay(ms);
      await then(exchange);
    },
  /** Uses the key up, makes the job or not, and dies. */
  claimAndDie:
    (how: { readonly withJob: boolean; readonly last?: Hook }): Hook =>
    async (exchange) => {
      const { server, req, body } = exchange;
      server.keys.add(String(req.headers['idempotency-key'] ?? ''));
      const { workflow, metadata } = JSON.parse(body.toString()) as Record<string, unknown>;
      if (how.withJob) server.addJob({ workflow, ...(metadata !== undefined && { metadata }) });
      await (how.last ?? fault.reset())(exchange);
    },
  /** A good answer that breaks off after so many bytes. */
  cut:
    (bytes: number, value: unknown, status = 201): Hook =>
    ({ res }) => {
      const text = JSON.stringify(value);
      res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': text.length });
      res.write(text.slice(0, bytes));
      setTimeout(() => res.destroy(), 10);
    },
  /** Raw event-stream bytes, then what is said. */
  sse:
    (text: string | Buffer, end: 'close' | 'reset' | 'hold' = 'close', chunkBytes?: number): Hook =>
    async ({ res, server }) => {
      server.streams.open += 1;
      server.streams.most = Math.max(server.streams.most, server.streams.open);
      res.once('close', () => void (server.streams.open -= 1));
      startSse(res);
      const bytes = Buffer.from(text);
      const step = chunkBytes ?? Math.max(1, bytes.length);
      for (let at = 0; at < bytes.length; at += step) {
        res.write(bytes.subarray(at, at + step));
        if (chunkBytes !== undefined) await new Promise((done) => setImmediate(done));
      }
      if (end === 'close') res.end();
      if (end === 'reset') setTimeout(() => res.socket?.resetAndDestroy(), 10);
    },
  /** One byte now and then, for ever. */
  drip:
    (everyMs: number): Hook =>
    async ({ res }) => {
      startSse(res);
      res.write('data: ');
      while (!res.destroyed) {
        res.write('x');
        await delay(everyMs);
      }
    },
};

async function readAll(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
