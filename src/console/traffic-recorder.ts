import type { IncomingMessage, ServerResponse } from 'node:http';
import { LRUCache } from 'lru-cache';
import { agentOf, clientIdIn } from '../auth/calling-client.ts';
import {
  V2_CALLS,
  interceptCalls,
  observeEvents,
  type PortCall,
} from '../observability/intercepted-port.ts';
import type { SecretRedactor } from '../observability/secret-redactor.ts';
import { type FindPromptId, createTrafficLinks } from '../observability/traffic-links.ts';
import type { SocketFrame } from '../observability/described-frame.ts';
import type { FrameObserver } from '../observability/traffic-log.ts';
import { describeArguments } from '../observability/v2-descriptions.ts';
import { atMost } from '../lib/lru-size.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import type { Caller, JobApi, JobEvent, Result } from '../protocol/job-api.ts';
import type { AnsweredHttpCall } from './traffic/answered-call.ts';
import { captureRequest, captureResponse, textIn } from './traffic/captured-body.ts';
import { differencesOf, frameDifferences } from './differences.ts';
import { apiOf, isOfPage, pictureIn } from './traffic/recorded-call.ts';
import { createShowText, shortText, shownHeaders } from './traffic/shown-text.ts';
import { frameEntry } from './traffic/frames.ts';
import { type RecordedEntry, TrafficStore } from './traffic-store.ts';
import { answerBody, eventEntry, requestBody, statusOfAnswer } from './traffic/v2-calls.ts';

/**
 * Records the calls and frames of v1 clients, and the v2 calls and events behind them, while a
 * reader exists.
 */
export type TrafficRecorder = ReturnType<typeof createTrafficRecorder>;

type RecorderOptions = {
  readonly now: () => number;
  readonly secrets: Pick<SecretRedactor, 'add' | 'redact'>;
  readonly promptIdOf: FindPromptId;
  /** True when another service runs the jobs. */
  readonly isRemote: boolean;
};

const MAX_PROMPTS = 5000;

export function createTrafficRecorder({ now, secrets, promptIdOf, isRemote }: RecorderOptions) {
  const store = new TrafficStore({ now });
  const callOfRequest = new WeakMap<IncomingMessage, RecordedEntry>();
  const callOfCaller = new WeakMap<Caller, RecordedEntry>();
  /** The callers of Holdover's own page, which are not recorded. */
  const ownCallers = new WeakSet<Caller>();
  const links = createTrafficLinks(promptIdOf);
  /** For each prompt: the call that submitted it, and the latest v2 call or event about it. */
  const submissions = new LRUCache<string, number>(atMost(MAX_PROMPTS));
  const lastV2 = new LRUCache<string, number>(atMost(MAX_PROMPTS));
  const showText = createShowText(secrets);

  /** Records a call that has arrived. Its user is not known yet. */
  function beginCall(request: IncomingMessage, response: ServerResponse): void {
    if (isOfPage(request)) return;
    const { method = '', url = '' } = request;
    const recorded = store.add({
      user: undefined,
      requestHeaders: shownHeaders(request.headers),
      request: captureRequest(request),
      response: captureResponse(response),
      requestType: request.headers['content-type'] ?? '',
      entry: {
        kind: 'call',
        method,
        target: withoutCredentials(url),
        api: apiOf(url),
        agent: agentOf(request),
        client_id: clientIdIn(url.split('?', 2)[1] ?? ''),
      },
    });
    callOfRequest.set(request, recorded);
    response.once('close', () => endCall(recorded, request, response));
  }

  function endCall(recorded: RecordedEntry, request: IncomingMessage, response: ServerResponse) {
    if (!store.isWanted(recorded.user)) return store.remove(recorded);
    recorded.responseHeaders = shownHeaders(response.getHeaders());
    recorded.responseType = String(response.getHeader('content-type') ?? '');
    const { at_ms: startedAtMs } = recorded.entry;
    const status = response.headersSent ? response.statusCode : 499;
    store.update(recorded, {
      ms: now() - startedAtMs,
      status,
      request_bytes: recorded.request?.totalBytes ?? 0,
      response_bytes: recorded.response?.totalBytes ?? 0,
      ...pictureIn(recorded.responseType),
      differences: differencesOf(
        { ...recorded.entry, status },
        { headers: request.headers, isRemote, body: () => textIn(recorded.request) },
      ),
    });
  }

  function recordFrame(frame: SocketFrame): void {
    const { user, sid, direction } = frame;
    if (!store.isWanted(user)) return;
    const { promptId, body, bodyType, contentStart, text, ...described } = frameEntry(frame);
    const prompt = links.promptOfFrame(frame, promptId);
    const line = {
      ...described,
      type: shortText(showText, described.type),
      text: shortText(showText, text),
    };
    store.add({
      user,
      contentStart,
      ...(direction === 'in'
        ? { request: body, requestType: bodyType }
        : { response: body, responseType: bodyType }),
      entry: {
        kind: 'frame',
        prompt_id: prompt === undefined ? null : shortText(showText, prompt),
        cause_id: direction === 'out' ? causeIn(lastV2, user, prompt) : null,
        direction,
        sid,
        ...line,
        ...(direction === 'out' && { differences: frameDifferences(line, { isRemote }) }),
      },
    });
  }

  async function recordPortCall(method: keyof JobApi, call: PortCall, args: readonly unknown[]) {
    const caller = (method === 'health' ? undefined : args[0]) as Caller | undefined;
    if (caller === undefined || ownCallers.has(caller) || !store.isWanted(caller.user)) {
      return call(...args);
    }
    const { user } = caller;
    const { key, secrets: sent = [], jobId } = describeArguments(method, args.slice(1));
    for (const secret of [caller.credential, ...sent]) secrets.add(secret);
    const [verb = '', target = ''] = V2_CALLS[method].split(' ');
    const cause = callOfCaller.get(caller);
    const promptId = links.promptOf(caller, jobId ?? key) ?? cause?.entry.prompt_id ?? null;
    const recorded = store.add({
      user,
      ...requestBody(method, args.slice(1)),
      entry: {
        kind: 'v2_call',
        prompt_id: promptId,
        job_id: jobId ?? null,
        cause_id: cause?.entry.id ?? causeIn(submissions, user, promptId),
        method: verb,
        target,
      },
    });
    try {
      const answer = await call(...args);
      endPortCall(recorded, method, { caller, answer });
      return method === 'events'
        ? observeEvents(answer, { onEvent: (event) => recordEvent(recorded, event) })
        : answer;
    } catch (error) {
      store.update(recorded, { ms: now() - recorded.entry.at_ms, status: 0 });
      throw error;
    }
  }

  function endPortCall(
    recorded: RecordedEntry,
    method: keyof JobApi,
    { caller, answer }: { readonly caller: Caller; readonly answer: Result<unknown> },
  ): void {
    Object.assign(recorded, answerBody(method, answer));
    const { at_ms: startedAtMs, job_id: knownJob, prompt_id: knownPrompt } = recorded.entry;
    const jobId = method === 'submit' && answer.ok ? (answer.value as { id: string }).id : knownJob;
    const promptId = knownPrompt ?? links.promptOf(caller, jobId ?? undefined) ?? null;
    if (promptId !== null && jobId !== null) links.linkJob(caller.user, jobId, promptId);
    store.update(recorded, {
      ms: now() - startedAtMs,
      status: statusOfAnswer(method, answer),
      job_id: jobId,
      prompt_id: promptId,
      response_bytes: recorded.response?.totalBytes ?? 0,
    });
    const cause = callOfCaller.get(caller);
    if (method === 'submit' && promptId !== null && cause) {
      linkSubmission(caller, promptId, cause);
    }
    if (method === 'get') rememberLastV2(caller.user, promptId, recorded);
  }

  /** Records an event. `stream`: the call that requested the events. */
  function recordEvent(stream: RecordedEntry, event: JobEvent): void {
    const { user = '', entry } = stream;
    if (!store.isWanted(user)) return;
    const { body, bodyType, text, ...described } = eventEntry(event);
    const promptId = entry.prompt_id ?? links.promptOf({ user }, entry.job_id ?? undefined) ?? null;
    const added = store.add({
      user,
      response: body,
      responseType: bodyType,
      entry: {
        kind: 'v2_event',
        prompt_id: promptId,
        job_id: entry.job_id,
        cause_id: entry.id,
        text: shortText(showText, text),
        ...described,
      },
    });
    rememberLastV2(user, promptId, added);
  }

  function linkSubmission(caller: Caller, promptId: string, { entry }: RecordedEntry): void {
    links.linkCaller(caller, promptId);
    submissions.set(`${caller.user} ${promptId}`, entry.id);
  }

  function rememberLastV2(user: string, promptId: string | null, { entry }: RecordedEntry): void {
    if (promptId !== null) lastV2.set(`${user} ${promptId}`, entry.id);
  }

  return {
    store,
    isRecording: store.isRecording,
    beginCall,
    /** Sets the caller of a call. v2 calls with this same caller object belong to the call. */
    identify(this: void, request: IncomingMessage, caller: Caller): void {
      if (!store.isRecording()) return;
      const recorded = callOfRequest.get(request);
      if (recorded === undefined) return void (isOfPage(request) && ownCallers.add(caller));
      recorded.user = caller.user;
      if (!store.isWanted(caller.user)) return store.remove(recorded);
      callOfCaller.set(caller, recorded);
    },
    /** Notes that calls with this same caller object are about this prompt. */
    submission(this: void, caller: Caller, promptId: string): void {
      const recorded = callOfCaller.get(caller);
      if (recorded === undefined) return;
      store.update(recorded, { prompt_id: promptId });
      linkSubmission(caller, promptId, recorded);
    },
    /** Records the end of a call. Its prompts and its user are known now. */
    answered(this: void, call: AnsweredHttpCall, request: IncomingMessage): void {
      const recorded = callOfRequest.get(request);
      if (recorded === undefined) return;
      recorded.user ??= call.user;
      const [promptId] = call.promptIds;
      if (promptId !== undefined) store.update(recorded, { prompt_id: promptId });
    },
    /** Records a socket that was opened, or refused with this status. */
    upgraded(this: void, status: number, request: IncomingMessage, user: string | undefined): void {
      if (!store.isRecording() || isOfPage(request) || !store.isWanted(user)) return;
      const target = withoutCredentials(request.url ?? '');
      const facts = { headers: request.headers, isRemote, body: () => '' };
      store.add({
        user,
        requestHeaders: shownHeaders(request.headers),
        entry: {
          kind: 'call',
          ms: 0,
          method: 'GET',
          target,
          api: 'v1',
          status,
          differences: differencesOf({ method: 'GET', target, status }, facts),
          agent: agentOf(request),
          client_id: clientIdIn((request.url ?? '').split('?', 2)[1] ?? ''),
        },
      });
    },
    /** Observes frames. Sockets of Holdover's own page are not recorded. */
    frames: {
      isOn: store.isRecording,
      record: (frame: SocketFrame) => frame.watches !== true && recordFrame(frame),
    } satisfies FrameObserver,
    /** Returns the same port, whose calls and events are recorded. */
    wrap: (jobs: JobApi): JobApi =>
      interceptCalls(jobs, (...called) => {
        const [, call, args] = called;
        return store.isRecording() ? recordPortCall(...called) : call(...args);
      }),
    close: () => store.close(),
  };
}

function causeIn(
  causes: LRUCache<string, number>,
  user: string,
  promptId: string | null | undefined,
): number | null {
  return causes.get(`${user} ${promptId}`) ?? null;
}
