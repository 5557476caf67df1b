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
import type { PortSubscriber } from '../observability/observed-port.ts';
import { assetRefText, findAssetRefs } from '../protocol/asset-refs.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import { monotonicNow } from '../lib/clock.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import type { Caller, Content, JobApi, Result, V2Error } from '../protocol/job-api.ts';

/** A v1 call that is being answered. */
type RecordedCall = { readonly method: string; readonly url: URL; readonly v2: string[] };

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

/**
 * Records a session: the v1 calls of a client and the v2 calls they became. Give it the v2 calls (`subscribe`), the v1
 * calls (`serve`) and the sockets (`onUpgrade`).
 */
export class SessionRecorder {
  readonly #callStorage = new AsyncLocalStorage<RecordedCall>();
  readonly #calls: V1Call[] = [];
  #events: SessionEvent[] = [];
  /** The callers of assets and of jobs, by their ids. */
  readonly #owners = new Map<string, Caller>();
  readonly #jobs = new Map<string, Caller>();
  /** The time at which each job was submitted. */
  readonly #submittedAtMs = new Map<string, number>();
  /** The last refusal of each v1 call. */
  readonly #refusals = new Map<RecordedCall, { workflow: Graph | undefined }>();
  readonly #secrets = new Set<string>();
  #usedSocket = false;
  #watchedJobs: JobApi | undefined;

  /** Records every v1 call. */
  readonly serve = async (ctx: Koa.Context, next: Koa.Next): Promise<void> => {
    const target = withoutCredentials(ctx.url);
    const call = { method: ctx.method, url: new URL(target, 'http://v1'), v2: [] };
    let status = 500;
    try {
      await this.#callStorage.run(call, next);
      status = ctx.status;
    } catch (error) {
      status = statusOf(error);
      throw error;
    } finally {
      this.#calls.push({ method: call.method, target, status, v2: call.v2 });
    }
  };

  /** Records the calls on a port with the v1 call that caused them. Reads its jobs and files from the same port. */
  subscribe(jobs: JobApi): PortSubscriber {
    this.#watchedJobs = jobs;
    return ({ method, operation, caller = NO_CALLER, args }) => {
      const call = this.#callStorage.getStore();
      call?.v2.push(operation);
      if (caller.credential !== undefined) this.#secrets.add(caller.credential);
      return {
        onAnswer: (answer) => this.#recorders[method]?.({ caller, args, answer, call }),
      };
    };
  }

  /** Records that a socket was opened. */
  onUpgrade({ url = '' }: { readonly url?: string | undefined }): void {
    if (/^(\/api)?\/ws(\?|$)/.test(url)) this.#usedSocket = true;
  }

  /**
   * Returns the session so far. The ends of its jobs are read from the port, also when the client did not wait for
   * them; jobs that no longer exist are left out.
   */
  async session(): Promise<Session> {
    const jobs = new Map<string, SessionJob>();
    for (const [jobId, caller] of this.#jobs) {
      const answer = await this.#watchedJobs?.get(caller, jobId);
      if (answer?.ok) jobs.set(jobId, endedJob(answer.value));
    }
    return { calls: this.#calls, events: this.#events, usedSocket: this.#usedSocket, jobs };
  }

  /** Reads a file of the session with the key of its owner. */
  async content(assetId: string): Promise<Result<Content> | undefined> {
    const caller = this.#owners.get(assetId);
    return caller && this.#watchedJobs?.content(caller, assetId);
  }

  /** Returns the keys that were used. Remove them from everything that is written. */
  secrets(): readonly string[] {
    return [...this.#secrets];
  }

  /** Records the v2 calls that belong to the session. */
  readonly #recorders: { readonly [method in keyof JobApi]?: (call: AnsweredJobCall) => void } = {
    createAsset: (call) => this.#recordUpload(call),
    assetFromHash: (call) => this.#recordUpload(call),
    deleteAsset: (call) => this.#recordDelete(call),
    submit: (call) => this.#recordSubmission(call),
    cancel: (call) => this.#recordCancel(call),
    content: (call) => this.#recordDownload(call),
  };

  #recordUpload({ caller, args, answer }: AnsweredJobCall): void {
    if (!answer.ok) return;
    const [{ filePath }] = args as ArgsOf<'createAsset'>;
    const asset = answer.value as ValueOf<'createAsset'>;
    this.#owners.set(asset.id, caller);
    const path = (filePath ?? asset.id).replace(/^input\//, '');
    this.#events = this.#events.filter((event) => !isUpload(event, asset.id));
    this.#events.push({
      kind: 'upload',
      assetId: asset.id,
      path,
      contentType: asset.content_type,
      hash: asset.hash ?? undefined,
    });
  }

  #recordSubmission({ caller, args, answer, call }: AnsweredJobCall): void {
    const [{ workflow, extraData, provenance }] = args as ArgsOf<'submit'>;
    const secrets = Object.entries(extraData).filter(([, value]) => value !== undefined);
    for (const [, secret] of secrets) this.#secrets.add(secret);
    const references: JsonObject[] = [];
    findAssetRefs(workflow as Json, references);
    for (const reference of references) {
      const id = assetRefText(reference, 'id') ?? '';
      this.#owners.set(id, this.#owners.get(id) ?? caller);
    }
    // The same v1 call has sent a part of the refused workflow.
    const refusal = call && this.#refusals.get(call);
    if (refusal) refusal.workflow = undefined;
    if (!answer.ok) return this.#recordRefusal(answer.error, workflow, call);
    const { id: jobId } = answer.value as ValueOf<'submit'>;
    this.#jobs.set(jobId, caller);
    this.#submittedAtMs.set(jobId, monotonicNow());
    const hasExtraPngInfo = (provenance?.extraPngInfo ?? null) !== null;
    const names = secrets.map(([name]) => name);
    this.#events.push({ kind: 'submit', jobId, workflow, secrets: names, hasExtraPngInfo });
  }

  #recordRefusal(error: V2Error, workflow: Graph, call: RecordedCall | undefined): void {
    const { code, message, status } = error;
    const isOfWorkflow = status === 400 || status === 422;
    const refusal = {
      kind: 'refused' as const,
      code,
      message,
      workflow: isOfWorkflow ? workflow : undefined,
    };
    if (call) this.#refusals.set(call, refusal);
    this.#events.push(refusal);
  }

  #recordDownload({ args, answer, call }: AnsweredJobCall): void {
    if (!answer.ok || !call?.url.pathname.endsWith('/view')) return;
    const [assetId] = args as ArgsOf<'content'>;
    const query = call.url.searchParams;
    const filename = posix.basename(query.get('filename') ?? '') || assetId;
    const renderingNames = ['preview', 'channel'].filter((name) => query.has(name));
    const rendering =
      renderingNames.map((name) => `${name}=${query.get(name)}`).join('&') || undefined;
    this.#events.push({ kind: 'download', assetId, filename, rendering });
  }

  #recordDelete({ args, answer }: AnsweredJobCall): void {
    const [assetId] = args as ArgsOf<'deleteAsset'>;
    if (answer.ok) this.#events = this.#events.filter((event) => !isUpload(event, assetId));
  }

  #recordCancel({ args, answer }: AnsweredJobCall): void {
    const [jobId] = args as ArgsOf<'cancel'>;
    if (!answer.ok) return;
    const nowMs = monotonicNow();
    const sinceSubmitMs = nowMs - (this.#submittedAtMs.get(jobId) ?? nowMs);
    this.#events.push({ kind: 'cancel', jobId, sinceSubmitMs });
  }
}

const NO_CALLER: Caller = { user: '' };

function isUpload(event: SessionEvent, assetId: string): boolean {
  return event.kind === 'upload' && event.assetId === assetId;
}

function statusOf(error: unknown): number {
  const status = (error as { status?: unknown }).status;
  return typeof status === 'number' ? status : 500;
}
