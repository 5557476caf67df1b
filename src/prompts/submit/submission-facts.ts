import { type V2Error, isAboutContent } from '../../protocol/job-api.ts';
import type { SubmissionPace } from '../submission-pace.ts';
import type { AttemptInput, Conditions, SearchInput } from './submission-table.ts';

/** Services keep an idempotency key for a day. After that, the same key could make a second job. */
const KEY_LIFETIME_MS = 20 * 60 * 60_000;
/** A prompt that used up more new keys without a job gets no further one. */
const MAX_NEW_KEYS = 3;
/** The results of searches that could see jobs. */
const SEEING: ReadonlySet<SearchInput> = new Set([
  'none',
  'absent',
  'not listed',
  'not seen',
  'no list',
]);

type NotedAttempt = {
  readonly input: AttemptInput;
  readonly error?: V2Error | undefined;
};

type NotedSearch = { readonly result: SearchInput; readonly mayForgetKeys: boolean };

/** The results of the attempts and searches of one submission. */
export class SubmissionFacts {
  /** True when an attempt under the current key may have made a job. */
  mayHaveJob: boolean;
  /** Attempts in a row that did not reach the service. */
  notSent = 0;
  /** Attempts of unknown outcome. */
  unknown = 0;
  /** `undefined`: the service has not shown if it remembers the keys of submissions. */
  #remembersKeys: boolean | undefined;
  #isKeyUsed = false;
  #newKeys = 0;
  /** True when an attempt got no answer: the service may still work on it. */
  #isAnswerMissing: boolean;
  /** True when the service said last that it cannot reach its engine: it has finished the request. */
  #isEngineDown = false;
  /** True when the last attempt was refused for its content, as every attempt would be. */
  #isContentRefused = false;
  #unknownSinceMs: number | undefined;
  #searchedSinceMs: number;
  #lastSearch: { readonly input: SearchInput; readonly sinceMs: number } | undefined;

  /** `mayHaveJob`: an earlier process may have sent the plan. */
  constructor(mayHaveJob: boolean, nowMs: number) {
    this.mayHaveJob = mayHaveJob;
    this.#isAnswerMissing = mayHaveJob;
    this.#searchedSinceMs = nowMs;
  }

  noteAttempt({ input, error }: NotedAttempt, nowMs: number): void {
    this.notSent = input === 'not sent' ? this.notSent + 1 : 0;
    this.#isContentRefused = input === 'refused' && error !== undefined && isAboutContent(error);
    if (input === 'key used') return this.#noteKeyUsed(nowMs);
    this.#isEngineDown = error?.engineDown === true;
    if (input === 'unknown') this.#noteUnknown(nowMs);
  }

  #noteKeyUsed(nowMs: number): void {
    this.mayHaveJob = true;
    this.#unknownSinceMs ??= nowMs;
    if (!this.#isKeyUsed) this.#searchedSinceMs = nowMs;
    this.#isKeyUsed = true;
  }

  #noteUnknown(nowMs: number): void {
    this.unknown++;
    if (!this.mayHaveJob) this.#searchedSinceMs = nowMs;
    this.mayHaveJob = true;
    this.#unknownSinceMs ??= nowMs;
    this.#isAnswerMissing ||= !this.#isEngineDown;
  }

  /** Returns what the result means after the attempts that were made. */
  noteSearch({ result, mayForgetKeys }: NotedSearch, nowMs: number): SearchInput {
    const input = this.#meaningOf(result);
    // The contract promises that keys are remembered.
    if (mayForgetKeys) this.#remembersKeys = false;
    else if (result !== 'unreachable') this.#remembersKeys ??= true;
    if (this.#lastSearch?.input !== input) this.#lastSearch = { input, sinceMs: nowMs };
    if (input === 'none') this.mayHaveJob = false;
    return input;
  }

  #meaningOf(result: SearchInput): SearchInput {
    if (result === 'not listed' && !this.#isAnswerMissing) return 'absent';
    return result === 'engine down' && !this.#isEngineDown ? 'no answer' : result;
  }

  /** The plan has another key, since the old one made no job. */
  noteNewKey(): void {
    this.mayHaveJob = false;
    this.#isKeyUsed = false;
    this.#isAnswerMissing = false;
    this.#newKeys++;
    this.#lastSearch = undefined;
  }

  /** From now on the job is only searched for: what earlier searches showed does not count. */
  noteOnlySearching(nowMs: number): void {
    this.#searchedSinceMs = nowMs;
    this.#lastSearch = undefined;
  }

  /** Returns the conditions for the table. */
  conditions(
    pace: SubmissionPace,
    now: {
      readonly nowMs: number;
      readonly ageMs: number;
      readonly lacksSecrets: boolean;
      readonly isOutboxFull: boolean;
    },
  ): Conditions {
    const { nowMs, ageMs, lacksSecrets, isOutboxFull } = now;
    const unchangedMs = nowMs - (this.#lastSearch?.sinceMs ?? nowMs);
    const wasSearched = this.#lastSearch !== undefined && SEEING.has(this.#lastSearch.input);
    const isKeyFree = !lacksSecrets && !this.#isKeyUsed && ageMs <= KEY_LIFETIME_MS;
    const maySend = isKeyFree && this.#remembersKeys === true;
    const { answering } = pace;
    const keysLeft = !lacksSecrets && this.#newKeys < MAX_NEW_KEYS;
    const inFlight = unchangedMs >= pace.inFlightMs;
    const isFirst = !this.mayHaveJob;
    return {
      first: isFirst,
      final: isFirst || (this.#isContentRefused && wasSearched),
      'outbox full': isFirst && isOutboxFull,
      'secrets gone': lacksSecrets,
      'tries left': this.notSent <= answering.notSentMs.length,
      'may repeat': maySend && this.unknown <= answering.unknownMs.length,
      'time left': nowMs - (this.#unknownSinceMs ?? nowMs) < answering.limitMs,
      'may send': maySend,
      'may send later': isKeyFree && this.#remembersKeys === undefined,
      'keys left': keysLeft,
      soon: unchangedMs >= pace.absentMs,
      'in flight': inFlight,
      'in flight, keys left': inFlight && keysLeft,
      window: nowMs - this.#searchedSinceMs >= pace.searchWindowMs,
    };
  }
}
