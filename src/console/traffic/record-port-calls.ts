import { LRUCache } from 'lru-cache';
import { bytesAtMost } from '../../lib/lru-size.ts';
import {
  V2_CALLS,
  interceptCalls,
  observeEvents,
  type PortCall,
} from '../../observability/intercepted-port.ts';
import type { SecretRedactor } from '../../observability/secret-redactor.ts';
import { type FindPromptId, createTrafficLinks } from '../../observability/traffic-links.ts';
import { describeArguments } from '../../observability/v2-descriptions.ts';
import type { Caller, JobApi, JobEvent, Result } from '../../protocol/job-api.ts';
import type { RecordedEntry, TrafficStore } from '../traffic-store.ts';
import { type ShowText, lineText } from './shown-text.ts';
import { answerBody, eventEntry, requestBody, statusOfAnswer } from './v2-calls.ts';

type PortCallRecorderOptions = {
  readonly store: TrafficStore;
  readonly now: () => number;
  readonly secrets: Pick<SecretRedactor, 'add'>;
  readonly showText: ShowText;
  readonly promptIdOf: FindPromptId;
};

const MAX_BYTES = 2 * 1024 * 1024;

/** Records v2 calls and their events, and the entry that caused each of them. */
export class PortCallRecorder {
  readonly #options: PortCallRecorderOptions;
  readonly links: ReturnType<typeof createTrafficLinks>;
  readonly #callOfCaller = new WeakMap<Caller, RecordedEntry>();
  /** The callers of Holdover's own page, which are not recorded. */
  readonly #ownCallers = new WeakSet<Caller>();
  /** For each prompt: the call that submitted it, and the latest v2 call or event about it. */
  readonly #submissions = new LRUCache<string, number>(bytesAtMost(MAX_BYTES));
  readonly #lastV2 = new LRUCache<string, number>(bytesAtMost(MAX_BYTES));

  constructor(options: PortCallRecorderOptions) {
    this.#options = options;
    this.links = createTrafficLinks(options.promptIdOf);
  }

  /** Returns the same port, whose calls and events are recorded. */
  wrap(jobs: JobApi): JobApi {
    const { store } = this.#options;
    return interceptCalls(jobs, (...called) => {
      const [, call, args] = called;
      return store.isRecording() ? this.#record(...called) : call(...args);
    });
  }

  ignoreCaller(caller: Caller): void {
    this.#ownCallers.add(caller);
  }

  /** v2 calls with this same caller object belong to the call. */
  linkCaller(caller: Caller, recorded: RecordedEntry): void {
    this.#callOfCaller.set(caller, recorded);
  }

  /** Notes that calls with this same caller object are about this prompt. */
  linkSubmission(caller: Caller, promptId: string): void {
    const recorded = this.#callOfCaller.get(caller);
    if (recorded === undefined) return;
    this.#options.store.update(recorded, { prompt_id: promptId });
    this.#linkPrompt(caller, promptId, recorded);
  }

  /** Returns the latest v2 call or event about a prompt. */
  lastV2Of(user: string, promptId: string | undefined): number | null {
    return this.#lastV2.get(`${user} ${promptId}`) ?? null;
  }

  async #record(method: keyof JobApi, call: PortCall, args: readonly unknown[]) {
    const { store } = this.#options;
    const caller = (method === 'health' ? undefined : args[0]) as Caller | undefined;
    if (!caller || this.#ownCallers.has(caller) || !store.isWanted(caller.user)) {
      return call(...args);
    }
    const recorded = this.#begin(method, caller, args);
    try {
      const answer = await call(...args);
      this.#end(recorded, method, { caller, answer });
      return method === 'events'
        ? observeEvents(answer, { onEvent: (event) => this.#recordEvent(recorded, event) })
        : answer;
    } catch (error) {
      store.update(recorded, { ms: this.#options.now() - recorded.entry.at_ms, status: 0 });
      throw error;
    }
  }

  #begin(method: keyof JobApi, caller: Caller, args: readonly unknown[]): RecordedEntry {
    const { store, secrets } = this.#options;
    const { user } = caller;
    const { key, secrets: sent = [], jobId } = describeArguments(method, args.slice(1));
    for (const secret of [caller.credential, ...sent]) secrets.add(secret);
    const [verb = '', target = ''] = V2_CALLS[method].split(' ');
    const cause = this.#callOfCaller.get(caller);
    const promptId = this.links.promptOf(caller, jobId ?? key) ?? cause?.entry.prompt_id ?? null;
    return store.add({
      user,
      ...requestBody(method, args.slice(1)),
      entry: {
        kind: 'v2_call',
        prompt_id: promptId,
        job_id: jobId ?? null,
        cause_id: cause?.entry.id ?? this.#submissions.get(`${user} ${promptId}`) ?? null,
        method: verb,
        target,
      },
    });
  }

  #end(
    recorded: RecordedEntry,
    method: keyof JobApi,
    { caller, answer }: { readonly caller: Caller; readonly answer: Result<unknown> },
  ): void {
    const { store, now } = this.#options;
    Object.assign(recorded, answerBody(method, answer));
    const { at_ms: startedAtMs, job_id: knownJob, prompt_id: knownPrompt } = recorded.entry;
    const jobId = method === 'submit' && answer.ok ? (answer.value as { id: string }).id : knownJob;
    const promptId = knownPrompt ?? this.links.promptOf(caller, jobId ?? undefined) ?? null;
    if (promptId !== null && jobId !== null) this.links.linkJob(caller.user, jobId, promptId);
    store.update(recorded, {
      ms: now() - startedAtMs,
      status: statusOfAnswer(method, answer),
      job_id: jobId,
      prompt_id: promptId,
      response_bytes: recorded.response?.totalBytes ?? 0,
    });
    const cause = this.#callOfCaller.get(caller);
    if (method === 'submit' && promptId !== null && cause) {
      this.#linkPrompt(caller, promptId, cause);
    }
    if (method === 'get') this.#rememberLastV2(caller.user, promptId, recorded);
  }

  /** Records an event. `stream`: the call that requested the events. */
  #recordEvent(stream: RecordedEntry, event: JobEvent): void {
    const { store, showText } = this.#options;
    const { user = '', entry } = stream;
    if (!store.isWanted(user)) return;
    const { body, bodyType, text, ...described } = eventEntry(event);
    const jobId = entry.job_id ?? undefined;
    const promptId = entry.prompt_id ?? this.links.promptOf({ user }, jobId) ?? null;
    const added = store.add({
      user,
      response: body,
      responseType: bodyType,
      entry: {
        kind: 'v2_event',
        prompt_id: promptId,
        job_id: entry.job_id,
        cause_id: entry.id,
        text: lineText(showText, text),
        ...described,
      },
    });
    this.#rememberLastV2(user, promptId, added);
  }

  #linkPrompt(caller: Caller, promptId: string, { entry }: RecordedEntry): void {
    this.links.linkCaller(caller, promptId);
    this.#submissions.set(`${caller.user} ${promptId}`, entry.id);
  }

  #rememberLastV2(user: string, promptId: string | null, { entry }: RecordedEntry): void {
    if (promptId !== null) this.#lastV2.set(`${user} ${promptId}`, entry.id);
  }
}
