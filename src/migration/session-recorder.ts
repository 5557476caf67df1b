import { AsyncLocalStorage } from 'node:async_hooks';
import { posix } from 'node:path';
import type Koa from 'koa';
import {
  type Session,
  type SessionEvent,
  type SessionJob,
  type V1Call,
  endedJob,
} from './session.ts';
import { monotonicNow } from '../lib/clock.ts';
import { V2_CALLS, interceptCalls } from '../observability/intercepted-port.ts';
import { type Json, isJsonObject } from '../protocol/json.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import type { Graph } from '../protocol/v2.ts';
import type { Caller, Content, JobApi, Result } from '../protocol/job-api.ts';

/** Records a session: the v1 calls of a client and the v2 calls they became. */
export type SessionRecorder = ReturnType<typeof createSessionRecorder>;

/** A v1 call that is being answered. */
type RecordedCall = { readonly method: string; readonly url: URL; readonly v2: string[] };

type SessionDraft = {
  readonly calls: V1Call[];
  events: SessionEvent[];
  readonly owners: Map<string, Caller>;
  readonly jobs: Map<string, Caller>;
  readonly secrets: Set<string>;
  /** The time at which each job was submitted. */
  readonly submittedAtMs: Map<string, number>;
  lastEventAtMs: number;
  /** The refusals, with the v1 call of each. */
  readonly refusals: Map<SessionEvent, RecordedCall | undefined>;
  readonly now: () => number;
  usedSocket: boolean;
};

/** Creates a recorder. Give it the port (`wrap`), the v1 calls (`serve`) and the sockets (`onUpgrade`). */
export function createSessionRecorder({
  now = monotonicNow,
}: { readonly now?: () => number } = {}) {
  const callStorage = new AsyncLocalStorage<RecordedCall>();
  const draft: SessionDraft = {
    calls: [],
    events: [],
    owners: new Map(),
    jobs: new Map(),
    secrets: new Set(),
    submittedAtMs: new Map(),
    lastEventAtMs: now(),
    refusals: new Map(),
    now,
    usedSocket: false,
  };
  let watchedJobs: JobApi | undefined;
  return {
    /** Records every v1 call. */
    async serve(this: void, ctx: Koa.Context, next: Koa.Next): Promise<void> {
      const target = withoutCredentials(ctx.url);
      const call = { method: ctx.method, url: new URL(target, 'http://v1'), v2: [] };
      let status = 500;
      try {
        await callStorage.run(call, next);
        status = ctx.status;
      } catch (error) {
        status = statusOf(error);
        throw error;
      } finally {
        draft.calls.push({ method: call.method, target, status, v2: call.v2 });
      }
    },
    /** Returns the same port, whose calls are recorded. */
    wrap(jobs: JobApi): JobApi {
      watchedJobs = jobs;
      return recordingJobs(jobs, { draft, currentCall: () => callStorage.getStore() });
    },
    /** Records that a socket was opened. */
    onUpgrade({ url = '' }: { readonly url?: string | undefined }): void {
      if (/^(\/api)?\/ws(\?|$)/.test(url)) draft.usedSocket = true;
    },
    /** Returns the session so far, with the ends of its jobs, which it reads from the port. */
    async session(): Promise<Session> {
      const { calls, events, usedSocket } = draft;
      return { calls, events, usedSocket, jobs: await endedJobs(draft, watchedJobs) };
    },
    /** Reads a file of the session with the key of its owner. */
    async content(assetId: string): Promise<Result<Content> | undefined> {
      const caller = draft.owners.get(assetId);
      return caller && watchedJobs?.content(caller, assetId);
    },
    /** Returns the keys that were used. Remove them from everything that is written. */
    secrets: (): readonly string[] => [...draft.secrets],
  };
}

type RecorderContext = {
  readonly draft: SessionDraft;
  readonly currentCall: () => RecordedCall | undefined;
};

/** Returns the same port. Its calls are recorded with the v1 call that caused them. */
function recordingJobs(jobs: JobApi, { draft, currentCall }: RecorderContext): JobApi {
  const record = createRecorders(draft);
  return interceptCalls(jobs, async (method, act, [first, ...args]) => {
    const call = currentCall();
    call?.v2.push(V2_CALLS[method]);
    const caller = first as Caller;
    if (caller?.credential !== undefined) draft.secrets.add(caller.credential);
    const answer = await act(caller, ...args);
    record(method, { caller, args, answer, call });
    return answer;
  });
}

type AnsweredJobCall = {
  readonly caller: Caller;
  readonly args: readonly unknown[];
  readonly answer: Result<unknown>;
  readonly call: RecordedCall | undefined;
};

type ArgsOf<Method extends keyof JobApi> =
  Parameters<JobApi[Method]> extends [Caller, ...infer Rest] ? Rest : never;
type ValueOf<Method extends keyof JobApi> =
  Awaited<ReturnType<JobApi[Method]>> extends Result<infer Value> ? Value : never;

/** Returns a function that records the v2 calls that belong to the session. */
function createRecorders(draft: SessionDraft) {
  const { owners } = draft;

  function recordUpload({ caller, args, answer }: AnsweredJobCall): void {
    if (!answer.ok) return;
    const [{ filePath }] = args as ArgsOf<'createAsset'>;
    const asset = answer.value as ValueOf<'createAsset'>;
    owners.set(asset.id, caller);
    const path = (filePath ?? asset.id).replace(/^input\//, '');
    draft.events = draft.events.filter((event) => !isUpload(event, asset.id));
    addEvent({
      kind: 'upload',
      assetId: asset.id,
      path,
      contentType: asset.content_type,
      hash: asset.hash ?? undefined,
    });
  }

  function addEvent(event: SessionEvent): void {
    draft.events.push(event);
    draft.lastEventAtMs = draft.now();
  }

  function recordSubmission({ caller, args, answer, call }: AnsweredJobCall): void {
    const [{ workflow, extraData, provenance }] = args as ArgsOf<'submit'>;
    const secrets = Object.entries(extraData).filter(([, value]) => value !== undefined);
    for (const [, secret] of secrets) draft.secrets.add(secret);
    if (!answer.ok) {
      const { code, message, status } = answer.error;
      const isOfWorkflow = status === 400 || status === 422;
      const refusal = {
        kind: 'refused',
        code,
        message,
        ...(isOfWorkflow && { workflow }),
      } as const;
      draft.refusals.set(refusal, call);
      return addEvent(refusal);
    }
    if (call) draft.events = draft.events.map((event) => withoutWorkflow(event, call));
    const { id: jobId } = answer.value as ValueOf<'submit'>;
    draft.jobs.set(jobId, caller);
    for (const id of referencesIn(workflow)) owners.set(id, owners.get(id) ?? caller);
    const hasExtraPngInfo = (provenance?.extraPngInfo ?? null) !== null;
    const names = secrets.map(([name]) => name);
    const differences = savedFileDifferences(provenance?.prompt, workflow);
    draft.submittedAtMs.set(jobId, draft.now());
    addEvent({
      kind: 'submit',
      jobId,
      workflow,
      secrets: names,
      hasExtraPngInfo,
      ...differences,
    });
  }

  function recordDownload({ args, answer, call }: AnsweredJobCall): void {
    if (!answer.ok || !call?.url.pathname.endsWith('/view')) return;
    const [assetId] = args as ArgsOf<'content'>;
    const query = call.url.searchParams;
    const filename = posix.basename(query.get('filename') ?? '') || assetId;
    const renderingNames = ['preview', 'channel'].filter((name) => query.has(name));
    const rendering =
      renderingNames.map((name) => `${name}=${query.get(name)}`).join('&') || undefined;
    addEvent({ kind: 'download', assetId, filename, rendering });
  }

  function recordDelete({ args, answer }: AnsweredJobCall): void {
    const [assetId] = args as ArgsOf<'deleteAsset'>;
    if (answer.ok) draft.events = draft.events.filter((event) => !isUpload(event, assetId));
  }

  function recordCancel({ args, answer }: AnsweredJobCall): void {
    const [jobId] = args as ArgsOf<'cancel'>;
    if (!answer.ok) return;
    const nowMs = draft.now();
    const sinceSubmitMs = nowMs - (draft.submittedAtMs.get(jobId) ?? nowMs);
    addEvent({ kind: 'cancel', jobId, pausedMs: nowMs - draft.lastEventAtMs, sinceSubmitMs });
  }

  /** Removes the workflow from a refusal when the same v1 call submitted a part of it later, which v2 accepted. */
  function withoutWorkflow(event: SessionEvent, call: RecordedCall): SessionEvent {
    if (event.kind !== 'refused' || draft.refusals.get(event) !== call) return event;
    return { kind: 'refused', code: event.code, message: event.message };
  }

  const byMethod: { readonly [method in keyof JobApi]?: (answered: AnsweredJobCall) => void } = {
    createAsset: recordUpload,
    assetFromHash: recordUpload,
    deleteAsset: recordDelete,
    submit: recordSubmission,
    cancel: recordCancel,
    content: recordDownload,
  };
  return (method: keyof JobApi, answered: AnsweredJobCall): void => byMethod[method]?.(answered);
}

/** Returns the differences between the graph that v1 writes into saved files and the one that v2 got. */
function savedFileDifferences(
  prompt: Json | undefined,
  workflow: Graph,
): { readonly isPartial: boolean; readonly namesFolder: boolean } {
  const nodes = isJsonObject(prompt) ? prompt : {};
  const written = Object.entries(workflow).flatMap(([id, { inputs }]) => {
    const node = nodes[id];
    const before = isJsonObject(node) && isJsonObject(node['inputs']) ? node['inputs'] : {};
    return Object.keys(inputs ?? {}).map((name) =>
      isJsonObject(inputs[name]) ? before[name] : null,
    );
  });
  return {
    isPartial: Object.keys(nodes).length > Object.keys(workflow).length,
    namesFolder: written.some((text) => typeof text === 'string' && text.endsWith(' [input]')),
  };
}

function isUpload(event: SessionEvent, assetId: string): boolean {
  return event.kind === 'upload' && event.assetId === assetId;
}

function* referencesIn(workflow: object): Generator<string> {
  for (const match of JSON.stringify(workflow).matchAll(
    /"__type":"core\/ASSET","info":\{"id":"([^"]+)"/g,
  )) {
    yield match[1] ?? '';
  }
}

/** Returns the end of each job, also when the client did not wait for it. Leaves out jobs that no longer exist. */
async function endedJobs(
  draft: SessionDraft,
  watchedJobs: JobApi | undefined,
): Promise<Map<string, SessionJob>> {
  const ended = new Map<string, SessionJob>();
  for (const [jobId, caller] of draft.jobs) {
    const answer = await watchedJobs?.get(caller, jobId);
    if (!answer?.ok) continue;
    ended.set(jobId, endedJob(answer.value));
  }
  return ended;
}

function statusOf(error: unknown): number {
  const status = (error as { status?: unknown }).status;
  return typeof status === 'number' ? status : 500;
}
