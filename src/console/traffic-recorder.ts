import type { IncomingMessage, ServerResponse } from 'node:http';
import { agentOf, clientIdIn } from '../auth/calling-client.ts';
import type { SocketFrame } from '../observability/described-frame.ts';
import type { PortSubscriber } from '../observability/observed-port.ts';
import type { FrameObserver, HttpCall } from '../observability/traffic-log.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import type { Caller } from '../protocol/job-api.ts';
import { captureRequest, captureResponse } from './traffic/captured-body.ts';
import { PortCallRecorder, type PortCallRecorderOptions } from './traffic/record-port-calls.ts';
import { apiOf, isOfPage, shownPictureType } from './traffic/recorded-call.ts';
import { createShowText, lineText, shownHeaders } from './traffic/shown-text.ts';
import { frameEntry } from './traffic/frames.ts';
import { type RecordedEntry, TrafficStore } from './traffic-store.ts';

type RecorderOptions = Omit<PortCallRecorderOptions, 'store' | 'showText'>;

/**
 * Records the calls and frames of v1 clients, and the v2 calls and events behind them, while a
 * reader exists.
 */
export class TrafficRecorder {
  readonly store: TrafficStore;
  /** Observes frames. Sockets of Holdover's own page are not recorded. */
  readonly frames: FrameObserver;
  /** Gets the v2 calls. */
  readonly portCalls: PortSubscriber;
  readonly #options: PortCallRecorderOptions;
  readonly #portCalls: PortCallRecorder;

  constructor(options: RecorderOptions) {
    const store = new TrafficStore(options);
    this.store = store;
    this.frames = {
      isOn: store.isRecording,
      record: (frame) => frame.watches !== true && this.#recordFrame(frame),
    };
    this.#options = { ...options, store, showText: createShowText(options.secrets) };
    this.#portCalls = new PortCallRecorder(this.#options);
    this.portCalls = this.#portCalls.subscriber;
  }

  /** Records a call that has arrived. Its user is not known yet. */
  beginCall(request: IncomingMessage, response: ServerResponse): void {
    if (!this.store.isRecording()) return;
    if (isOfPage(request)) return this.#portCalls.ignoreRequest(request);
    const { method = '', url = '' } = request;
    const recorded = this.store.add({
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
        ...clientOf(request),
      },
    });
    this.#portCalls.linkRequest(request, recorded);
    response.once('close', () => this.#endCall(recorded, response));
  }

  /** Sets the caller of a call. */
  identify(request: IncomingMessage, { user }: Caller): void {
    const recorded = this.#portCalls.entryOf(request);
    if (recorded === undefined) return;
    recorded.user = user;
    if (!this.store.isWanted(user)) this.store.remove(recorded);
  }

  /** Notes that the call with this caller submits this prompt. */
  submission(caller: Caller, promptId: string): void {
    this.#portCalls.linkSubmission(caller, promptId);
  }

  /** Records the end of a call. Its prompts and its user are known now. */
  answered(call: HttpCall, request: IncomingMessage): void {
    const recorded = this.#portCalls.entryOf(request);
    if (recorded === undefined) return;
    recorded.user ??= call.user;
    const [promptId] = call.promptIds;
    if (promptId !== undefined) this.store.update(recorded, { prompt_id: promptId });
  }

  /** Records a socket that was opened, or refused with this status. */
  upgraded(status: number, request: IncomingMessage, user: string | undefined): void {
    if (!this.store.isRecording() || isOfPage(request) || !this.store.isWanted(user)) return;
    this.store.add({
      user,
      requestHeaders: shownHeaders(request.headers),
      entry: {
        kind: 'call',
        ms: 0,
        method: 'GET',
        target: withoutCredentials(request.url ?? ''),
        api: 'v1',
        status,
        ...clientOf(request),
      },
    });
  }

  close(): void {
    this.store.close();
  }

  #endCall(recorded: RecordedEntry, response: ServerResponse): void {
    const { store } = this;
    if (!store.isWanted(recorded.user)) return store.remove(recorded);
    recorded.responseHeaders = shownHeaders(response.getHeaders());
    recorded.responseType = String(response.getHeader('content-type') ?? '');
    const { at_ms: startedAtMs } = recorded.entry;
    const status = response.headersSent ? response.statusCode : 499;
    store.update(recorded, {
      ms: this.#options.now() - startedAtMs,
      status,
      response_bytes: recorded.response?.totalBytes ?? 0,
      ...shownPictureType(recorded.responseType),
    });
  }

  #recordFrame(frame: SocketFrame): void {
    const { user, sid, direction } = frame;
    if (!this.store.isWanted(user)) return;
    const { promptId, body, bodyType, contentStart, text, ...described } = frameEntry(frame);
    const prompt = this.#options.causes.promptOfFrame(frame, promptId);
    const line = { ...described, type: this.#short(described.type), text: this.#short(text) };
    const isSent = direction === 'out';
    this.store.add({
      user,
      contentStart,
      ...(isSent
        ? { response: body, responseType: bodyType }
        : { request: body, requestType: bodyType }),
      entry: {
        kind: 'frame',
        prompt_id: prompt === undefined ? null : this.#short(prompt),
        cause_id: isSent ? this.#portCalls.lastV2Of(user, prompt) : null,
        direction,
        sid,
        ...line,
      },
    });
  }

  #short(text: string): string {
    return lineText(this.#options.showText, text);
  }
}

/** Returns the calling program, and the client id in the address. */
function clientOf(request: IncomingMessage) {
  const query = (request.url ?? '').split('?', 2)[1] ?? '';
  return { agent: agentOf(request), client_id: clientIdIn(query) };
}
