import { type EntryStore, LogStream } from './log-stream.ts';
import { ByUser } from '../sockets/by-user.ts';
import { type PromptOfUser, LeadershipLost } from '../prompts/prompt-event-log.ts';

/** How long the log of an ended prompt is kept, which is as long as its frames. */
const ENDED_TTL_MS = 120_000;

/** The event logs of all prompts that this process knows. */
export class LogStreams {
  readonly #store: EntryStore;
  readonly #streams = new Map<string, LogStream>();
  readonly #byUser = new ByUser<LogStream>();
  readonly #endedSinceMs = new WeakMap<LogStream, number>();

  constructor(store: EntryStore) {
    this.#store = store;
  }

  get(key: string): LogStream | undefined {
    return this.#streams.get(key);
  }

  /** The log of this prompt; created if it is not known. */
  open(prompt: PromptOfUser): LogStream {
    const known = this.#streams.get(prompt.key);
    const stream = known ?? new LogStream(prompt, this.#store);
    this.#streams.set(prompt.key, stream);
    this.#byUser.add(stream.user, stream);
    return stream;
  }

  delete(key: string): void {
    const stream = this.#streams.get(key);
    if (stream) this.#byUser.delete(stream.user, stream);
    this.#streams.delete(key);
  }

  /** The write token of a prompt, for the ledger; throws `LeadershipLost` when this process does not lead the prompt. */
  token(key: string): string {
    const token = this.get(key)?.token();
    if (token === undefined) throw new LeadershipLost();
    return token;
  }

  /** Call when the ledger refused a write: ends the leadership before the next renewal, and returns the error to throw. */
  refused(key: string, token: string): Error {
    const stream = this.get(key);
    if (stream?.token() === token) stream.loseLead();
    return new LeadershipLost();
  }

  isLed(key: string): boolean {
    return this.get(key)?.token() !== undefined;
  }

  /** The logs of the prompts that this process leads. */
  led(): readonly LogStream[] {
    return [...this.#streams.values()].filter((stream) => stream.token() !== undefined);
  }

  ofUser(user: string): readonly LogStream[] {
    return [...this.#byUser.of(user)];
  }

  deleteOfUser(user: string): void {
    for (const stream of this.ofUser(user)) this.delete(stream.key);
  }

  /** Removes prompts that ended more than `ENDED_TTL_MS` ago. */
  removeEnded(nowMs: number): void {
    for (const stream of this.#streams.values()) {
      if (!stream.hasEnded()) continue;
      const sinceMs = this.#endedSinceMs.get(stream) ?? nowMs;
      this.#endedSinceMs.set(stream, sinceMs);
      if (nowMs - sinceMs >= ENDED_TTL_MS) this.delete(stream.key);
    }
  }
}

/** The arguments for a script about led prompts: key and token of each. */
export function keysAndTokens(led: readonly LogStream[]): string[] {
  return led.flatMap((stream) => [stream.key, stream.token() ?? '']);
}
