import { type EntryStore, LogStream } from './log-stream.ts';
import { type PromptOfUser, LeadershipLost } from '../prompts/prompt-event-log.ts';

/** Ended prompts are remembered this long, as their frames are. */
const ENDED_TTL_MS = 120_000;

/** The logs of all prompts that this process knows. */
export class LogStreams {
  readonly #store: EntryStore;
  readonly #streams = new Map<string, LogStream>();
  readonly #byUser = new Map<string, Set<LogStream>>();
  readonly #endedSinceMs = new WeakMap<LogStream, number>();

  constructor(store: EntryStore) {
    this.#store = store;
  }

  get(key: string): LogStream | undefined {
    return this.#streams.get(key);
  }

  /** The log of this prompt, from now on known. */
  open(prompt: PromptOfUser): LogStream {
    const { key, user } = prompt;
    const known = this.#streams.get(key);
    if (known) return known;
    const stream = new LogStream(prompt, this.#store);
    this.#streams.set(key, stream);
    this.#byUser.set(user, (this.#byUser.get(user) ?? new Set()).add(stream));
    return stream;
  }

  delete(key: string): void {
    const stream = this.#streams.get(key);
    if (!stream) return;
    this.#streams.delete(key);
    const ofUser = this.#byUser.get(stream.user);
    ofUser?.delete(stream);
    if (ofUser?.size === 0) this.#byUser.delete(stream.user);
  }

  /** The write token of a prompt that this process owns, for the ledger. */
  token(key: string): string {
    const token = this.get(key)?.token();
    if (token === undefined) throw new LeadershipLost();
    return token;
  }

  /** A refused write ends the leadership at once, without waiting for the next renewal. */
  refused(key: string, token: string): Error {
    const stream = this.get(key);
    if (stream?.token() === token) stream.loseLead();
    return new LeadershipLost();
  }

  isOwned(key: string): boolean {
    return this.#streams.get(key)?.token() !== undefined;
  }

  /** The logs that this process owns. */
  owned(): readonly LogStream[] {
    return [...this.#streams.values()].filter((stream) => stream.token() !== undefined);
  }

  ofUser(user: string): readonly LogStream[] {
    return [...(this.#byUser.get(user) ?? [])];
  }

  deleteOfUser(user: string): void {
    for (const stream of this.ofUser(user)) this.delete(stream.key);
  }

  /** Forgets prompts that ended a while ago. */
  removeEnded(nowMs: number): void {
    for (const stream of this.#streams.values()) {
      if (!stream.hasEnded()) continue;
      const sinceMs = this.#endedSinceMs.get(stream) ?? nowMs;
      this.#endedSinceMs.set(stream, sinceMs);
      if (nowMs - sinceMs >= ENDED_TTL_MS) this.delete(stream.key);
    }
  }
}

/** Keys and tokens of owned logs, alternating. */
export function keysAndTokens(owned: readonly LogStream[]): string[] {
  return owned.flatMap((stream) => [stream.key, stream.token() ?? '']);
}
