import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { pino } from 'pino';
import { createBodyReader } from '../../src/http/json-body.ts';
import { createPublicAddresses } from '../../src/http/public-address.ts';
import { createHttpServer } from '../../src/http/server.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { createMemoryLedger } from '../support/app/memory-ledger.ts';
import { DEFAULT_MODEL_LIMITS, type ModelLimits } from '../../src/router/limits.ts';
import { type ModelDef, answerJson } from '../../src/router/model-def.ts';
import { type ModelRouterOptions, LocalModelRouter } from '../../src/router/router.ts';

/** A router on a real socket, with models that do what a test wants. */
export type OpenRouter = {
  readonly url: string;
  readonly port: number;
  readonly ledger: Ledger;
  /** The log, one object a line. */
  readonly lines: readonly Record<string, any>[];
  /** Moves the router's clock. */
  readonly advance: (ms: number) => void;
  readonly call: (path: string, init?: RequestInit) => Promise<Answer>;
  readonly run: (id: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>;
  readonly close: () => Promise<void>;
};

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: any;
};

/** A model whose runs a test steps through: each waits until it is let go. */
export type Stepped = {
  readonly def: ModelDef;
  readonly runs: readonly { readonly input: any; readonly signal: AbortSignal }[];
  /** Lets the oldest waiting run answer. */
  readonly answer: (value?: unknown) => void;
  /** Resolves when so many runs have begun in all. */
  readonly begun: (count: number) => Promise<void>;
};

export function model(more: Partial<ModelDef> & { model: string }): ModelDef {
  return {
    provider: 'test',
    title: more.model,
    description: 'a model of the tests',
    billing: { charges_on_policy_rejection: 'no' },
    output: { 'application/json': {} },
    run: async ({ input }) => answerJson({ echo: input }),
    ...more,
  };
}

export function steppedModel(name = 'stepped', more: Partial<ModelDef> = {}): Stepped {
  const runs: { input: any; signal: AbortSignal }[] = [];
  const waiting: ((value: any) => void)[] = [];
  const watchers: (() => void)[] = [];
  return {
    runs,
    def: model({
      model: name,
      run: async ({ input, signal }) => {
        runs.push({ input, signal });
        watchers.forEach((look) => look());
        const value = await new Promise<any>((resolve, reject) => {
          waiting.push(resolve);
          signal.addEventListener('abort', () => {
            waiting.splice(waiting.indexOf(resolve), 1);
            reject(new Error('aborted'));
          });
        });
        return answerJson(value);
      },
      ...more,
    }),
    answer: (value = { ok: true }) => waiting.shift()?.(value),
    begun: (count) =>
      new Promise((resolve) => {
        const look = () => void (runs.length >= count && resolve());
        watchers.push(look);
        look();
      }),
  };
}

export async function openRouter(
  options: {
    models?: readonly ModelDef[];
    limits?: Partial<ModelLimits>;
    ledger?: Ledger;
    keysFile?: string;
    isLedgerShared?: boolean;
    callerOf?: ModelRouterOptions['access']['callerOf'];
    /** Its public address and the proxies it trusts. */
    proxy?: Parameters<typeof createPublicAddresses>[0];
  } = {},
): Promise<OpenRouter> {
  const lines: Record<string, any>[] = [];
  const log = pino(
    { level: 'trace', base: null },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  let shiftMs = 0;
  const ledger = options.ledger ?? createMemoryLedger();
  const router = new LocalModelRouter({
    models: options.models ?? [model({ model: 'echo' })],
    records: { ledger, isShared: options.isLedgerShared ?? false },
    log,
    now: () => Date.now() + shiftMs,
    cursorSecret: Buffer.from('secret'),
    access: {
      callerOf: options.callerOf ?? ((key) => ({ user: `user of ${key}`, credential: key })),
      keysFile: options.keysFile,
    },
    limits: { ...DEFAULT_MODEL_LIMITS, ...options.limits },
    requests: {
      bodies: createBodyReader({ maxBytes: 100 * 1024 * 1024 }),
      addresses: createPublicAddresses(options.proxy),
    },
  });
  const app = new Koa();
  app.on('error', () => {});
  app.use(router.middleware);
  const server = createHttpServer(app.callback() as RequestListener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const call = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const headers = { 'X-API-Key': 'ann', ...(init.headers as Record<string, string>) };
    return await read(await fetch(url + path, { ...init, headers }));
  };
  return {
    url,
    port,
    ledger,
    lines,
    advance: (ms) => void (shiftMs += ms),
    call,
    run: (id, body, headers = {}) =>
      call(`/v1/models/${id}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    async close() {
      await router.close();
      server.close();
      server.closeAllConnections();
      if (!options.ledger) await ledger.close();
    },
  };
}

export async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  const isJson = headers.get('content-type')?.includes('json');
  return { status, headers, text, json: isJson && text ? JSON.parse(text) : undefined };
}

/** The status and the error types of an answer; every error of the router has all of them. */
export function errorOf({ status, headers, json }: Answer) {
  return {
    status,
    header: headers.get('x-service-error-type'),
    alias: headers.get('x-comfy-error-type'),
    body: json?.error_type,
  };
}

/** The same bucket in the body and under both names of the header. */
export function said(status: number, bucket: string) {
  return { status, header: bucket, alias: bucket, body: bucket };
}
