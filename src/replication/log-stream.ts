import { createMutex } from '../lib/concurrency.ts';
import {
  type PromptLogEntry,
  type LogSubscriber,
  type PromptOfUser,
  LeadershipLost,
  PREVIEW_HEAD_BYTES,
} from '../prompts/prompt-event-log.ts';
import type { ReceiverGroup, SubscribedSince } from '../sockets/delivery.ts';
import type { ProgressInput } from '../translate/progress/progress-state.ts';
import { type Json, parseJson, stringifyJson } from '../protocol/json.ts';
import type { FileRef } from '../protocol/v1.ts';
import type { RedisPrompts, StoredEntry } from './redis-prompts.ts';

/** Stores and reads entries and received positions. */
export type EntryStore = Pick<RedisPrompts, 'write' | 'after' | 'receivedUpTo'>;

/** The event log of one prompt in this process. Handles its entries one after the other. */
export class LogStream {
  readonly key: string;
  readonly user: string;
  readonly #store: EntryStore;
  readonly #enqueue = createMutex();
  #subscriber: LogSubscriber | undefined;
  #token: string | undefined;
  #lastRead = 0;
  #isNew = false;
  #hasEnded = false;

  constructor({ key, user }: PromptOfUser, store: EntryStore) {
    this.key = key;
    this.user = user;
    this.#store = store;
  }

  /** The write token, if this process leads the prompt. */
  token(): string | undefined {
    return this.#token;
  }

  hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** True when the log has no subscriber here, and will get none from this process. */
  isUnknown(): boolean {
    return this.#subscriber === undefined && !this.#isNew;
  }

  /** True when the subscriber got the last entry. */
  hasAppliedEnd(): boolean {
    return this.#hasEnded && this.#subscriber !== undefined;
  }

  async subscribe(subscriber: LogSubscriber, since: SubscribedSince): Promise<void> {
    // A new prompt of this process has no entries to read; a prompt that it took over has.
    if (this.#token !== undefined && this.#lastRead === 0) {
      this.#subscriber = subscriber;
      return;
    }
    await this.#enqueue(async () => {
      this.#subscriber = subscriber;
      subscriber.onSubscribed(await this.#store.receivedUpTo(this.key), since);
      this.#lastRead = 0;
      await this.#readMissing();
    });
  }

  /** Call when this process has claimed a new prompt, which it now leads. */
  startNew(token: string): void {
    this.#isNew = true;
    this.#token = token;
  }

  /** Makes this process the leader after all entries are applied; false when it already leads with this token. */
  takeLead(token: string): Promise<boolean> {
    return this.#enqueue(async () => {
      if (this.#token === token) return false;
      await this.#readMissing();
      this.#token = token;
      return true;
    });
  }

  /** Call when another process leads the prompt, or may do so soon. */
  loseLead(): void {
    if (this.#token === undefined) return;
    this.#token = undefined;
    this.#subscriber?.onLeadershipLost();
    // Until now received entries were ignored as this process's own: read those of the new leader.
    this.catchUp().catch(() => {});
  }

  /** Stores an entry, then applies it; rejects with `LeadershipLost` when this process does not lead the prompt. */
  async append(entry: PromptLogEntry): Promise<void> {
    // Fail without queueing: the entries of the new leader, ahead in the queue, may wait for this caller.
    if (this.#token === undefined) throw new LeadershipLost();
    await this.#enqueue(() => this.#append(entry));
  }

  /** Applies an entry that another process wrote; reads missed entries first. */
  receive(n: number, text: string, picture?: Uint8Array): Promise<void> {
    return this.#enqueue(async () => {
      if (n <= this.#lastRead || this.#token !== undefined) return;
      if (n === this.#lastRead + 1) await this.#apply(n, decodeEntry(text, picture));
      else await this.#readMissing();
    });
  }

  /** Reads and applies missed entries. */
  catchUp(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#token === undefined) await this.#readMissing();
    });
  }

  /** Reads the positions up to which sockets have received the log. Call when messages about them were missed. */
  async readReceivedPositions(): Promise<void> {
    const upTo = await this.#store.receivedUpTo(this.key);
    for (const group of ['client', 'hosted'] as const) this.receivedElsewhere(group, upTo[group]);
  }

  /** Applies the end of a prompt whose entries have expired. */
  finish(kind: 'recorded' | 'removed'): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#hasEnded || this.#token !== undefined) return;
      await this.#apply(this.#lastRead + 1, { kind });
    });
  }

  /** Call when sockets of another process have received the log up to this position. */
  receivedElsewhere(group: ReceiverGroup, upTo: number): void {
    this.#subscriber?.onReceivedElsewhere(group, upTo);
  }

  /** Resolves when all received entries are applied. */
  whenIdle(): Promise<void> {
    return this.#enqueue(async () => {});
  }

  async #append(entry: PromptLogEntry): Promise<void> {
    if (this.#token === undefined) throw new LeadershipLost();
    const n = this.#lastRead + 1;
    const isLast = entry.kind === 'recorded';
    if (!(await this.#store.write(this, this.#token, { n, isLast, ...encodeEntry(entry) }))) {
      this.loseLead();
      throw new LeadershipLost();
    }
    if (isLast) this.#token = undefined;
    await this.#apply(n, entry);
  }

  async #apply(n: number, entry: PromptLogEntry): Promise<void> {
    this.#lastRead = n;
    if (entry.kind === 'recorded' || entry.kind === 'removed') this.#hasEnded = true;
    await this.#subscriber?.apply(entry, n);
  }

  async #readMissing(): Promise<void> {
    for (const { n, text } of await this.#store.after(this.key, this.#lastRead)) {
      await this.#apply(n, decodeEntry(text));
    }
  }
}

type Preview = Extract<ProgressInput, { kind: 'event' }> & { readonly event: { event: 'preview' } };
type WithFiles = Extract<ProgressInput, { files: unknown }>;

/** @internal */
export function encodeEntry(entry: PromptLogEntry): Omit<StoredEntry, 'n'> {
  if (entry.kind !== 'input') return { text: JSON.stringify(entry) };
  const { input } = entry;
  if ('files' in input) return { text: encodeInput({ ...input, files: [...input.files] }) };
  if (!isPreview(input)) return { text: encodeInput(input) };
  const { bytes, ...data } = input.event.data;
  const head = Buffer.from(bytes.subarray(0, PREVIEW_HEAD_BYTES)).toString('base64');
  return {
    text: encodeInput({ ...input, event: { event: 'preview', data, head } }),
    picture: bytes,
  };
}

/** A preview without its picture gets the first bytes of it, so that its step is still counted. */
function decodeEntry(text: string, picture?: Uint8Array): PromptLogEntry {
  const entry = parseJson(text) as unknown as PromptLogEntry;
  if (entry.kind !== 'input') return entry;
  const { input } = entry;
  if ('files' in input) return { kind: 'input', input: withFiles(input) };
  if (!isPreview(input)) return entry;
  const { head, data } = input.event as unknown as { head: string; data: object };
  const bytes = picture ?? Buffer.from(head, 'base64');
  const event = { event: 'preview', data: { ...data, bytes } } as Preview['event'];
  return { kind: 'input', input: { ...input, event } };
}

function withFiles(input: WithFiles): WithFiles {
  return { ...input, files: new Map(input.files as unknown as [string, FileRef][]) };
}

function encodeInput(input: object): string {
  return stringifyJson({ kind: 'input', input } as unknown as Json);
}

function isPreview(input: ProgressInput): input is Preview {
  return input.kind === 'event' && input.event.event === 'preview';
}
