import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { bytesAtMost } from '../../lib/lru-size.ts';
import type { CallCause, CallCauses } from '../../observability/call-causes.ts';
import type { PortCall, PortSubscriber } from '../../observability/observed-port.ts';
import type { SecretRedactor } from '../../observability/secret-redactor.ts';
import type { Caller, JobEvent, Result } from '../../protocol/job-api.ts';
import type { RecordedEntry, TrafficStore } from '../traffic-store.ts';
import { type ShowText, lineText } from './shown-text.ts';
import { answerBody, eventEntry, requestBody, statusOfAnswer } from './v2-calls.ts';

/** The parts that calls and frames are recorded with. */
export type PortCallRecorderOptions = {
  readonly store: TrafficStore;
  readonly now: () => number;
  readonly secrets: SecretRedactor;
  readonly showText: ShowText;
  readonly causes: CallCauses;
};

type AnsweredCall = {
  readonly call: PortCall;
  readonly caller: Caller;
  readonly answer: Result<unknown>;
};

const MAX_BYTES = 2 * 1024 * 1024;

/** Records v2 calls and their events, and the entry that caused each of them. */
export class PortCallRecorder {
  readonly #options: PortCallRecorderOptions;
  /** The entries of the calls that cause v2 calls. */
  readonly #entries = new WeakMap<CallCause, RecordedEntry>();
  /** The calls of Holdover's own page, which are not recorded. */
  readonly #ownCalls = new WeakSet<CallCause>();
  /** For each prompt: the call that submitted it, and the latest v2 call or event about it. */
  readonly #submissions = new LRUCache<string, number>(bytesAtMost(MAX_BYTES));
  readonly #lastV2 = new LRUCache<string, number>(bytesAtMost(MAX_BYTES));

  constructor(options: PortCallRecorderOptions) {
    this.#options = options;
  }

  ignoreRequest(request: IncomingMessage): void {
    this.#ownCalls.add(this.#options.causes.causeOf(request));
  }

  /** The v2 calls that this request causes belong to the entry. */
  linkRequest(request: IncomingMessage, recorded: RecordedEntry): void {
    this.#entries.set(this.#options.causes.causeOf(request), recorded);
  }

  /** Returns the entry of a request, or of the request that this caller made. */
  entryOf(requestOrCaller: IncomingMessage | Caller): RecordedEntry | undefined {
    return this.#entries.get(this.#options.causes.causeOf(requestOrCaller));
  }

  /** Notes that the call with this caller submits this prompt. */
  linkSubmission(caller: Caller, promptId: string): void {
    const recorded = this.entryOf(caller);
    if (recorded === undefined) return;
    this.#options.store.update(recorded, { prompt_id: promptId });
    this.#rememberSubmission(caller, promptId, recorded);
  }

  /** Returns the latest v2 call or event about a prompt. */
  lastV2Of(user: string, promptId: string | undefined): number | null {
    return this.#lastV2.get(`${user} ${promptId}`) ?? null;
  }

  /** Records a v2 call and the events of its stream, while a reader wants them. */
  readonly subscriber: PortSubscriber = (call) => {
    const { store, causes, now } = this.#options;
    const { caller } = call;
    if (!store.isRecording() || !caller || !store.isWanted(caller.user)) return undefined;
    if (this.#ownCalls.has(causes.causeOf(caller))) return undefined;
    const recorded = this.#begin(call, caller);
    return {
      onAnswer: (answer) => this.#end(recorded, { call, caller, answer }),
      onFailure: () => store.update(recorded, { ms: now() - recorded.entry.at_ms, status: 0 }),
      onEvent: (event) => this.#recordEvent(recorded, call, event),
    };
  };

  #begin(call: PortCall, caller: Caller): RecordedEntry {
    const { store, secrets } = this.#options;
    for (const secret of call.secrets) secrets.add(secret);
    const cause = this.entryOf(caller);
    const promptOfCause = cause?.entry.prompt_id ?? null;
    if (call.promptId === undefined && promptOfCause !== null) call.linkPrompt(promptOfCause);
    const { promptId, jobId } = call;
    const [verb = '', target = ''] = call.operation.split(' ');
    const submission = this.#submissions.get(`${caller.user} ${promptId}`);
    return store.add({
      user: caller.user,
      ...requestBody(call.method, call.args),
      entry: {
        kind: 'v2_call',
        prompt_id: promptId ?? null,
        job_id: jobId ?? null,
        cause_id: cause?.entry.id ?? submission ?? null,
        method: verb,
        target,
      },
    });
  }

  #end(recorded: RecordedEntry, { call, caller, answer }: AnsweredCall): void {
    const { store, now } = this.#options;
    const { method, promptId, jobId } = call;
    Object.assign(recorded, answerBody(method, answer));
    store.update(recorded, {
      ms: now() - recorded.entry.at_ms,
      status: statusOfAnswer(method, answer),
      job_id: jobId ?? null,
      prompt_id: promptId ?? null,
      response_bytes: recorded.response?.totalBytes ?? 0,
    });
    const cause = this.entryOf(caller);
    if (method === 'submit' && promptId !== undefined && cause) {
      this.#rememberSubmission(caller, promptId, cause);
    }
    if (method === 'get') this.#rememberLastV2(caller.user, promptId, recorded);
  }

  /** Records an event. `stream`: the call that requested the events. */
  #recordEvent(stream: RecordedEntry, { promptId }: PortCall, event: JobEvent): void {
    const { store, showText } = this.#options;
    const { user = '', entry } = stream;
    if (!store.isWanted(user)) return;
    const { body, bodyType, text, ...described } = eventEntry(event);
    const added = store.add({
      user,
      response: body,
      responseType: bodyType,
      entry: {
        kind: 'v2_event',
        prompt_id: promptId ?? null,
        job_id: entry.job_id,
        cause_id: entry.id,
        text: lineText(showText, text),
        ...described,
      },
    });
    this.#rememberLastV2(user, promptId, added);
  }

  #rememberSubmission(caller: Caller, promptId: string, { entry }: RecordedEntry): void {
    this.#options.causes.causeOf(caller).promptId = promptId;
    this.#submissions.set(`${caller.user} ${promptId}`, entry.id);
  }

  #rememberLastV2(user: string, promptId: string | undefined, { entry }: RecordedEntry): void {
    if (promptId !== undefined) this.#lastV2.set(`${user} ${promptId}`, entry.id);
  }
}
