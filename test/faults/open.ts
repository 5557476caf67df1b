import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type RequestInit, fetch } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { SubmissionPace } from '../../src/prompts/submission-pace.ts';
import type { RemoteLimits } from '../../src/remote/limits.ts';
import { type FaultProxy, openFaultProxy } from '../support/processes/fault-proxy.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type HostileV2, type WireJob, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import { testedUpstream } from '../support/upstreams/tested-upstream.ts';
import {
  type AnswerRecord,
  type SocketRecord,
  type PromptRecord,
  type Run,
  checkAll,
  footprint,
  jobsOf,
} from '../support/processes/invariants.ts';
import { type Recorder, connect } from '../support/clients/v1-client.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { flat } from '../support/graphs/workflows.ts';

/** Every wait cut down to what a test can sit through. */
export const FAST: Partial<RemoteLimits> = {
  connections: 16,
  discoverTimeoutMs: 500,
  connectTimeoutMs: 400,
  submitTimeoutMs: 500,
  readTimeoutMs: 500,
  bodyIdleTimeoutMs: 700,
  readBudgetMs: 600,
  uploadBudgetMs: 600,
  readRetryMs: 20,
  minRetryAfterMs: 60,
  maxRetryAfterMs: 400,
  defaultRetryAfterMs: 100,
  refusedPauseMs: 400,
  snapshotMs: 40,
  confirmAfterMs: 60,
  streamIdleTimeoutMs: 400,
  afterTerminalMs: 200,
  streamCheckMs: { opening: 5_000, first: 5_000, last: 5_000 },
  reconnectMs: { first: 20, last: 100 },
  failedReadMs: 40,
  readsPerSecond: 1_000,
  pollOnlyMs: 60_000,
  uncertainStreamMs: 5_000,
  pollMs: {
    watched: { first: 40, last: 40 },
    unwatched: { first: 80, last: 160 },
    queued: { first: 40, last: 80 },
  },
};

/** In front of the upstream is one server, or what deploy/compose.yaml has: HAProxy, two servers, Redis and a bucket. */
const IS_STACK = testedUpstream() === 'stack';

/** Five processes take longer to start than one. */
export const SLOWER = IS_STACK ? 3 : 1;

/** In front of one upstream. */
export const SERVERS = IS_STACK ? 2 : 1;

/** For tests about one process: its own limits, its log, its data folder. */
export const testOneServer = test.skipIf(IS_STACK);

/** Of all clients of a scene together. */
const CLIENT_CONNECTIONS = 12;

/** The same for submissions that are not over at once. */
const FAST_PACE: SubmissionPace = {
  retryAfterMs: { least: 60, most: 400, unstated: 100 },
  notSentMs: { first: 50, last: 200 },
  searchMs: { first: 40, last: 120 },
  searchWindowMs: 300,
  absentMs: 40,
  inFlightMs: 400,
  answering: { notSentMs: [20, 40], unknownMs: [20, 60], searchMs: 40, limitMs: 280 },
};

type Options = {
  readonly limits?: Partial<RemoteLimits>;
  readonly pace?: Partial<SubmissionPace>;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Of the first process only. */
  readonly firstEnv?: NodeJS.ProcessEnv;
  readonly mount?: string;
  /** Instead of the line to the hostile server. */
  readonly upstreamUrl?: string;
  /** The line is down until a test brings it up. */
  readonly line?: 'down';
};

/** A Holdover process, the line it is on, and the upstream at its other end. */
export type FaultSetup = {
  readonly upstream: HostileV2;
  readonly proxy: FaultProxy;
  readonly holdover: () => Holdover;
  /** A v1 client with a key of its own. */
  client(options?: { readonly key?: string; readonly clientId?: string }): Promise<Client>;
  /** SIGKILL, or nothing if it is gone already; then another process on what it stored. */
  restart(options?: { readonly env?: NodeJS.ProcessEnv }): Promise<void>;
  /** I1 to I10 over all that was said and done so far. */
  check(): Promise<void>;
  readonly run: Run;
  close(): Promise<void>;
};

export type Answer = {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly text: string;
  readonly json: any;
};

/** A v1 client; every call and frame is recorded. */
export type Client = {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Recorder;
  readonly clientId: string;
  /** One prompt, known again by its marker. */
  post(options?: {
    readonly marker?: string;
    readonly prompt?: object;
    readonly more?: object;
  }): Promise<Answer & { readonly marker: string; readonly promptId: string }>;
  ask(path: string, init?: RequestInit): Promise<Answer>;
  say(path: string, body?: unknown): Promise<Answer>;
  history(promptId: string): Promise<any>;
  /** Waits until history knows the prompt. */
  ended(promptId: string, timeoutMs?: number): Promise<any>;
  word(promptId: string): Promise<string>;
  queue(): Promise<{ running: string[]; pending: string[] }>;
  /** The names of the frames the socket received of one prompt, in order. */
  outline(promptId: string): string[];
  jobs(marker: string): readonly WireJob[];
  /** Another socket of the same client. */
  reconnect(): Promise<Recorder>;
};

/** The scene that all tests of a file share, once it is there; its jobs run. */
export function useSharedSetup(options: Options = {}): FaultSetup {
  vi.setConfig({ testTimeout: 20_000 * SLOWER, hookTimeout: 30_000 * SLOWER });
  const shared = {} as FaultSetup;
  beforeAll(async () => {
    Object.assign(shared, await openFaultSetup(options));
    shared.upstream.script(runsToCompletion());
  });
  afterAll(() => shared.close());
  return shared;
}

/** Every prompt ends once, in success with its picture, however its upstream behaves. */
export async function expectWhole(client: Client, promptId: string): Promise<any> {
  const entry = await client.ended(promptId);
  expect(entry.status.status_str).toBe('success');
  expect(entry.outputs['9'].images).toHaveLength(1);
  await client.socket.untilDone(promptId);
  const heard = client.outline(promptId);
  expect(heard[0]).toBe('execution_start');
  expect(heard.filter((name) => name === 'executed:9')).toHaveLength(1);
  expect(heard.slice(-2)).toEqual(['execution_success', 'executing:null']);
  return entry;
}

export async function openFaultSetup(options: Options = {}): Promise<FaultSetup> {
  const { mount = '' } = options;
  const upstream = await openHostileV2({ mount });
  const proxy = await openFaultProxy(upstream.origin);
  if (options.line === 'down') await proxy.down();
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-faults-'));
  const start = (env: NodeJS.ProcessEnv = {}): Promise<Holdover> => {
    const outbox = { ...FAST_PACE, ...options.pace };
    const limits = JSON.stringify({ upstream: { ...FAST, outbox, ...options.limits } });
    const url = options.upstreamUrl ?? proxy.url + mount;
    const own = ['--upstream', url, '--limits', limits];
    // Whatever stands in for a store of files is on this machine too.
    const redirects = ['--upstream-redirects', '127.0.0.1'];
    const args = [...own, ...redirects, ...(options.args ?? [])];
    return startHoldover({
      upstream: IS_STACK ? 'stack' : 'embedded',
      dataDir,
      args,
      env: { ...options.env, ...env },
    });
  };
  let holdover = await start(options.firstEnv);
  const record = {
    answers: [] as AnswerRecord[],
    posts: [] as PromptRecord[],
    sockets: [] as SocketRecord[],
    keys: [options.env?.['HOLDOVER_UPSTREAM_KEY'] ?? []].flat(),
    oldLogs: [] as string[],
  };
  const run: Run = {
    ...record,
    upstream,
    holdover: () => holdover,
    base: { files: 0, sockets: 0, rssBytes: 0 },
  };
  await fetch(`${holdover.url}/healthz`);
  Object.assign(run.base, footprint(holdover));
  const recorders: Recorder[] = [];
  const dispatcher = new Agent({ connections: CLIENT_CONNECTIONS });
  const setup: FaultSetup = {
    upstream,
    proxy,
    run,
    holdover: () => holdover,
    client: (own = {}) => openClient(setup, { ...record, recorders, dispatcher }, own),
    async restart({ env } = {}) {
      record.oldLogs.push(holdover.log());
      await holdover.kill9();
      holdover = await start(env);
      Object.assign(run.base, footprint(holdover));
    },
    check: () => checkAll(run),
    async close() {
      for (const recorder of recorders) recorder.socket.terminate();
      await dispatcher.destroy();
      await holdover.dispose();
      await proxy.close();
      await upstream.close();
      await rm(dataDir, { recursive: true, force: true });
      expect(upstream.failures).toEqual([]);
    },
  };
  return setup;
}

/** A scene of this test alone. */
export async function openOwnSetup(options: Options = {}): Promise<FaultSetup> {
  const setup = await openFaultSetup(options);
  onTestFinished(() => setup.close());
  return setup;
}

type OnRecord = {
  readonly answers: AnswerRecord[];
  readonly posts: PromptRecord[];
  readonly sockets: SocketRecord[];
  readonly keys: string[];
  readonly recorders: Recorder[];
  readonly dispatcher: Agent;
};

async function openClient(
  setup: FaultSetup,
  record: OnRecord,
  own: { readonly key?: string; readonly clientId?: string },
): Promise<Client> {
  const { key = `key-${randomUUID()}`, clientId = randomUUID() } = own;
  // In hosted form, with or without a key.
  const headers: Record<string, string> = { 'X-API-Key': key };
  if (key !== '' && !record.keys.includes(key)) record.keys.push(key);

  async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const url = `${setup.holdover().url}${path}`;
    const { dispatcher } = record;
    const own = { ...headers, ...(init.headers as Record<string, string>) };
    const response = await fetch(url, { redirect: 'manual', dispatcher, ...init, headers: own });
    const text = await response.text();
    const { status } = response;
    // The balancer stands for a server that was killed: no server has answered.
    if (IS_STACK && status >= 502 && text.startsWith('<html>')) throw new Error(text);
    record.answers.push({ account: key, what: `${init.method ?? 'GET'} ${path}`, status, text });
    return { status, headers: response.headers, text, json: jsonOf(text) };
  }

  async function listen(): Promise<Recorder> {
    const recorder = await connect(setup.holdover().wsUrl, { clientId, headers });
    const early: string[] = [];
    recorder.socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) return;
      const { type, data: said } = JSON.parse(data.toString()) as { type: string; data: any };
      if (type !== 'executing' || said.node !== null) return;
      void history(said.prompt_id).then(
        (entry) => void (entry ?? early.push(said.prompt_id)),
        () => {},
      );
    });
    record.recorders.push(recorder);
    const isWhole = () => recorder.socket.readyState === recorder.socket.OPEN;
    const openedAtMs = Date.now();
    record.sockets.push({ account: key, frames: recorder.frames, early, isWhole, openedAtMs });
    return recorder;
  }

  const history = async (promptId: string): Promise<any> =>
    (await ask(`/history/${encodeURIComponent(promptId)}`)).json?.[promptId];
  const say = (path: string, body: unknown = {}): Promise<Answer> =>
    ask(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  let socket = await listen();

  return {
    key,
    headers,
    clientId,
    get socket() {
      return socket;
    },
    ask,
    history,
    say,
    async post({ marker = `m${randomUUID()}`, prompt, more } = {}) {
      const body = { prompt: prompt ?? flat({ prefix: marker }), client_id: clientId, ...more };
      const answer = await say('/prompt', body);
      const promptId = answer.json?.prompt_id ?? answer.json?.error?.extra_info?.prompt_id;
      record.posts.push({ account: key, marker, promptId, status: answer.status });
      return { ...answer, marker, promptId };
    },
    ended: (promptId, timeoutMs = 15_000) => pollForEnd(() => history(promptId), timeoutMs),
    word: async (promptId) =>
      (await ask(`/api/job/${encodeURIComponent(promptId)}/status`)).json?.status,
    async queue() {
      const { json } = await ask('/queue');
      const ids = (items: [number, string][]) => items.map(([, id]) => id);
      return { running: ids(json.queue_running), pending: ids(json.queue_pending) };
    },
    outline: (promptId) =>
      socket
        .outline(promptId)
        .filter((name) => !name.startsWith('binary') && !name.startsWith('progress_state')),
    jobs: (marker) => jobsOf(setup.upstream, marker),
    async reconnect() {
      socket = await listen();
      return socket;
    },
  };
}

const POLL_MS = { first: 25, last: 200 } as const;

/** Asks less and less often: hundreds of prompts waited for at once would only keep the server busy. */
async function pollForEnd(history: () => Promise<any>, timeoutMs: number): Promise<any> {
  const deadlineMs = Date.now() + timeoutMs;
  let waitMs: number = POLL_MS.first;
  for (;;) {
    // A server that is just started again may refuse the connection.
    const entry = await history().catch(() => undefined);
    if (entry !== undefined) return entry;
    if (Date.now() > deadlineMs) throw new Error(`the prompt has no end after ${timeoutMs} ms`);
    await delay(waitMs);
    waitMs = Math.min(waitMs * 1.5, POLL_MS.last);
  }
}

function jsonOf(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
