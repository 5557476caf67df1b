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
  /** Whose key came along; '' without one. */
  readonly account: string;
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
  | 'health'
  | 'signed'
  | 'objectInfo';

export type WireJob = { id: string; status: string; [field: string]: any };

/** One request being answered, with the means to answer it badly. */
export type Exchange = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: Buffer;
  /** The id in the path. */
  readonly id: string;
  /** Whose key came along; '' without one. */
  readonly account: string;
  readonly server: HostileV2;
  readonly json: (status: number, value: unknown, headers?: Record<string, string>) => void;
  /** Answers as a correct server does. */
  readonly honestly: () => Promise<void>;
};

export type Hook = (exchange: Exchange) => unknown;

/** Runs a submitted job. */
export type JobScript = (job: WireJob, server: HostileV2) => Promise<void>;

export type HostileV2 = {
  readonly url: string;
  readonly origin: string;
  readonly journal: Recorded[];
  readonly jobs: Map<string, WireJob>;
  readonly blobs: Map<string, Buffer>;
  /** Next requests of a route are answered by these, one each; later ones correctly. */
  once(route: Route, ...hooks: Hook[]): void;
  /** All requests of a route. */
  always(route: Route, hook: Hook): void;
  requests(route: Route): Recorded[];
  /** The same for what comes with one key; its hooks go before those for all. */
  of(account: string): Pick<HostileV2, 'once' | 'always' | 'requests'> & {
    /** Jobs that were made with this key. */
    jobs(): WireJob[];
  };
  /** Sets how jobs run that are submitted from now on: all of them, or those of one account. */
  script(script: JobScript | undefined, account?: string): void;
  /** Sends an event on the streams of a job; a later stream begins with the latest progress and preview. */
  emit(id: string, event: string, data: unknown): void;
  /** The job that a correct server makes of a submission. */
  makeJob(exchange: Exchange, fields?: Partial<WireJob>): WireJob;
  addJob(fields?: Partial<WireJob>): WireJob;
  /** Changes a job and reports the change on its streams. */
  change(id: string, fields: Partial<WireJob>): void;
  /** Idempotency keys that are used up. */
  readonly keys: Set<string>;
  readonly streams: { open: number; most: number };
  /** Streams beyond so many are refused, where no hook answers. */
  maxStreams: number;
  /** Bytes of assets; ten digits for those that are not here. */
  readonly contents: Map<string, Buffer>;
  /** Where contents are redirected to: links that expire after so long. */
  signing: { readonly origin: string; readonly forMs: number } | undefined;
  /** Keys that are accepted; all of them while empty. */
  readonly admitted: Set<string>;
  readonly connections: () => number;
  /** Errors of the hooks themselves. */
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

/** Outside the API: links that authorize themselves, and what the host's own engine knows. */
const OTHERS: readonly (readonly [Route, string, RegExp])[] = [
  ['signed', 'GET', /^\/signed\/([^/?]+)/],
  ['objectInfo', 'GET', /^\/api\/object_info$/],
];

const TERMINAL = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** A v2 server over real sockets that answers by its hooks, and correctly where it has none. */
export async function openHostileV2(options: { readonly mount?: string } = {}): Promise<HostileV2> {
  const { mount = '' } = options;
  const prefix = `${mount}/api/v2`;
  const journal: Recorded[] = [];
  const jobs = new Map<string, WireJob>();
  const blobs = new Map<string, Buffer>();
  const keys = new Set<string>();
  const queues = new Map<string, Hook[]>();
  const standing = new Map<string, Hook>();
  const scripts = new Map<string, JobScript>();
  const said = new Map<string, Said>();
  const contents = new Map<string, Buffer>();
  const admitted = new Set<string>();
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
    const found =
      ROUTES.find(([, method, shape]) => method === req.method && shape.test(inside)) ??
      OTHERS.find(([, method, shape]) => method === req.method && shape.test(path));
    const id = decodeURIComponent((found?.[2].exec(inside) ?? found?.[2].exec(path))?.[1] ?? '');
    const account = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '';
    const hook = found && hookFor(found[0], account);
    const body = found && self.hasty.has(found[0]) ? Buffer.alloc(0) : await readAll(req);
    const headers = req.headers as Recorded['headers'];
    const route = found?.[0] ?? 'unknown';
    const { method = '' } = req;
    journal.push({ route, method, path, headers, body, atMs: Date.now(), account });
    const json: Exchange['json'] = (status, value, more = {}) => {
      res.writeHead(status, { 'Content-Type': 'application/json', ...more });
      res.end(JSON.stringify(value));
    };
    const honestly = async (): Promise<void> => {
      if (!found) return json(404, error('not_found'));
      if (admitted.size > 0 && !admitted.has(account) && route !== 'signed') {
        return json(401, error('unauthorized'));
      }
      await honest[found[0]]({ req, res, body, id, account, server: self, json, honestly });
    };
    const exchange: Exchange = { req, res, body, id, account, server: self, json, honestly };
    await (hook ? hook(exchange) : honestly());
  }

  function hookFor(route: Route, account: string): Hook | undefined {
    const own = `${route} ${account}`;
    return (
      queues.get(own)?.shift() ??
      queues.get(route)?.shift() ??
      standing.get(own) ??
      standing.get(route)
    );
  }

  function jobOf(id: string, account: string): WireJob | undefined {
    const job = jobs.get(id);
    return job?.['account'] === undefined || job['account'] === account ? job : undefined;
  }

  const honest: { readonly [name in Route]: Hook } = {
    submit(exchange) {
      const { req, json } = exchange;
      const key = String(req.headers['idempotency-key'] ?? '');
      if (keys.has(key)) return json(422, error('idempotency_key_reuse'));
      json(201, shown(makeJob(exchange)));
    },
    list({ account, json }) {
      const theirs = [...jobs.values()].filter(({ id }) => jobOf(id, account));
      json(200, { jobs: theirs.toReversed().map(shown) });
    },
    get: ({ id, account, json }) => answerJob(jobOf(id, account), json),
    workflow({ id, account, json }) {
      const job = jobOf(id, account);
      if (!job) return json(404, error('not_found'));
      json(200, { workflow: job['workflow'], format: 'api' });
    },
    async events({ id, account, res, json }) {
      const job = jobOf(id, account);
      if (!job) return json(404, error('job_not_found'));
      if (streams.open >= self.maxStreams) {
        return json(429, error('too_many_streams'), { 'Retry-After': '1' });
      }
      countStream(self, res);
      startSse(res);
      await tell(res, job, saidOf(said, id));
    },
    cancel({ id, account, json }) {
      const job = jobOf(id, account);
      if (job && !TERMINAL.has(job.status)) self.change(id, { status: 'canceled' });
      answerJob(job, json);
    },
    upload({ body, json }) {
      const text = body.toString('latin1');
      const hash = /name="expected_hash"\r\n\r\n([^\r]+)/.exec(text)?.[1] ?? randomUUID();
      blobs.set(hash, body);
      const id = randomUUID();
      contents.set(id, fileIn(body));
      json(201, { ...ASSET, id, hash, size_bytes: fileIn(body).length });
    },
    fromHash({ body, json }) {
      const { hash, file_path } = JSON.parse(body.toString()) as {
        hash: string;
        file_path: string;
      };
      const blob = blobs.get(hash);
      if (!blob) return json(404, error('blob_not_found'));
      const id = randomUUID();
      contents.set(id, fileIn(blob));
      json(201, { ...ASSET, id, hash, file_path, size_bytes: fileIn(blob).length });
    },
    byHash({ id, res }) {
      res.writeHead(blobs.has(id) ? 200 : 404);
      res.end();
    },
    asset: ({ id, json }) => json(200, { ...ASSET, id }),
    content({ id, req, res }) {
      const { signing } = self;
      if (!signing) return sendBytes(req, res, contents.get(id) ?? DIGITS);
      const until = Date.now() + signing.forMs;
      res.writeHead(302, { Location: `${signing.origin}/signed/${id}?until=${until}` });
      res.end();
    },
    signed({ id, req, res }) {
      const until = new URL(req.url ?? '', 'http://x').searchParams.get('until');
      if (Date.now() > Number(until)) return void res.writeHead(403).end('expired');
      sendBytes(req, res, contents.get(id) ?? DIGITS);
    },
    objectInfo: ({ json }) => json(404, error('not_found')),
    health: ({ json }) => json(200, { status: 'healthy', upstream: 'http://127.0.0.1:8188' }),
  };

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const shown = (job: WireJob): object => {
    const { workflow: _workflow, key: _key, account: _account, ...rest } = job;
    return rest;
  };
  const makeJob = ({ req, body, account }: Exchange, fields: Partial<WireJob> = {}): WireJob => {
    const key = String(req.headers['idempotency-key'] ?? '');
    keys.add(key);
    const { workflow, metadata } = JSON.parse(body.toString()) as Record<string, unknown>;
    const label = metadata === undefined ? {} : { metadata };
    const owner = account === '' ? {} : { account };
    const job = self.addJob({ workflow, ...label, key, ...owner, ...fields });
    const script = scripts.get(account) ?? scripts.get('');
    void script?.(job, self).catch((failure: unknown) => void failures.push(failure));
    return job;
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
    maxStreams: Infinity,
    contents,
    signing: undefined,
    admitted,
    connections: () => sockets.size,
    failures,
    hasty: new Set(),
    once: (route, ...hooks) => void queues.set(route, [...(queues.get(route) ?? []), ...hooks]),
    always: (route, hook) => void standing.set(route, hook),
    requests: (route) => journal.filter((request) => request.route === route),
    of: (account) => ({
      once: (route, ...hooks) => {
        const own = `${route} ${account}`;
        queues.set(own, [...(queues.get(own) ?? []), ...hooks]);
      },
      always: (route, hook) => void standing.set(`${route} ${account}`, hook),
      requests: (route) => self.requests(route).filter((request) => request.account === account),
      jobs: () => [...jobs.values()].filter((job) => job['account'] === account),
    }),
    script(script, account = '') {
      if (script) scripts.set(account, script);
      else scripts.delete(account);
    },
    emit: (id, event, data) => void saidOf(said, id).push({ event, data }),
    makeJob,
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
    change(id, fields) {
      Object.assign(jobs.get(id) ?? {}, fields);
      const { status } = fields;
      if (status !== undefined) saidOf(said, id).push({ event: 'status', data: { status } });
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return self;
}

type Said = { readonly event: string; readonly data: unknown }[];

function saidOf(said: Map<string, Said>, id: string): Said {
  const known = said.get(id) ?? [];
  said.set(id, known);
  return known;
}

/** First how things stand, then what happens, to the end of the job. */
async function tell(res: ServerResponse, job: WireJob, said: Said): Promise<void> {
  res.write(frame('status', { status: job.status }));
  for (const kind of ['progress', 'preview']) {
    const latest = said.findLast(({ event }) => event === kind);
    if (latest && !TERMINAL.has(job.status)) res.write(frame(kind, latest.data));
  }
  let lastStatus = job.status;
  for (let at = said.length; !res.destroyed; await delay(3)) {
    if (TERMINAL.has(lastStatus)) return void res.end();
    for (; at < said.length; at += 1) {
      const { event, data } = said[at] ?? { event: '', data: {} };
      if (event === 'status') lastStatus = (data as { status: string }).status;
      res.write(frame(event, data));
    }
    // A test changed it without an event.
    if (lastStatus !== job.status) res.write(frame('status', { status: job.status }));
    lastStatus = job.status;
  }
}

function countStream({ streams }: HostileV2, res: ServerResponse): void {
  streams.open += 1;
  streams.most = Math.max(streams.most, streams.open);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) streams.open -= 1;
    isOpen = false;
  };
  // The client may open its next stream before "close" comes.
  res.once('prefinish', close);
  res.once('close', close);
}

const DIGITS = Buffer.from('0123456789');

function sendBytes(req: IncomingMessage, res: ServerResponse, bytes: Buffer): void {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '') ?? [];
  const start = Number(first ?? 0);
  const end = last ? Math.min(Number(last), bytes.length - 1) : bytes.length - 1;
  const part = bytes.subarray(start, end + 1);
  res.writeHead(first === undefined ? 200 : 206, {
    'Content-Type': 'image/png',
    'Content-Length': part.length,
    'Accept-Ranges': 'bytes',
    ...(first !== undefined && { 'Content-Range': `bytes ${start}-${end}/${bytes.length}` }),
  });
  res.end(part);
}

/** The last part of a form. */
function fileIn(form: Buffer): Buffer {
  const head = form.indexOf('name="file"');
  const start = form.indexOf('\r\n\r\n', head) + 4;
  const boundary = form.subarray(0, form.indexOf('\r\n')).toString('latin1');
  return head < 0 ? DIGITS : form.subarray(start, form.indexOf(`\r\n${boundary}`, start));
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
      const { server, req, json } = exchange;
      const key = String(req.headers['idempotency-key'] ?? '');
      if (server.keys.has(key)) return json(422, error('idempotency_key_reuse'));
      server.keys.add(key);
      if (how.withJob) server.makeJob(exchange);
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
      countStream(server, res);
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
