import { type EntryStore, LogStream } from './log-stream.ts';
import { ByUser } from '../sockets/by-user.ts';
import { type PromptOfUser, LeadershipLost } from '../prompts/prompt-event-log.ts';

/** Ended prompts are remembered this long, as their frames are. */
const ENDED_TTL_MS = 120_000;

/** The logs of all prompts that this process knows. */
export class LogStreams {
  readonly #storeOf: (prompt: PromptOfUser) => EntryStore;
  readonly #streams = new Map<string, LogStream>();
  readonly #byUser = new ByUser<LogStream>();
  readonly #endedSinceMs = new WeakMap<LogStream, number>();

  constructor(storeOf: (prompt: PromptOfUser) => EntryStore) {
    this.#storeOf = storeOf;
  }

  get(key: string): LogStream | undefined {
    return this.#streams.get(key);
  }

  /** The log of this prompt, from now on known. */
  open(prompt: PromptOfUser): LogStream {
    const known = this.#streams.get(prompt.key);
    const stream = known ?? new LogStream(prompt, this.#storeOf(prompt));
    this.#streams.set(prompt.key, stream);
    this.#byUser.add(stream.user, stream);
    return stream;
  }

  delete(key: string): void {
    const stream = this.#streams.get(key);
    if (stream) this.#byUser.delete(stream.user, stream);
    this.#streams.delete(key);
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
    return this.get(key)?.token() !== undefined;
  }

  /** The logs that this process owns. */
  owned(): readonly LogStream[] {
    return [...this.#streams.values()].filter((stream) => stream.token() !== undefined);
  }

  ofUser(user: string): readonly LogStream[] {
    return [...this.#byUser.of(user)];
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
