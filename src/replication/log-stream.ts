import { createMutex } from '../lib/concurrency.ts';
import {
  type PromptLogEntry,
  type LogSubscriber,
  LeadershipLost,
} from '../prompts/prompt-event-log.ts';
import type { ReceiverGroup, SubscribedSince, ReceivedUpTo } from '../sockets/receivers.ts';
import { decodeEntry, encodeEntry } from './entry-codec.ts';

/** The log of one prompt, as this process receives it. */
export type LogStream = {
  readonly key: string;
  readonly user: () => string;
  /** The token of the owner; `undefined`: this process is not the owner. */
  readonly token: () => string | undefined;
  subscribe(user: string, subscriber: LogSubscriber, since: SubscribedSince): Promise<void>;
  /** The prompt is new, and this process owns it. */
  startNew(token: string): void;
  /** Makes this process the owner, once all entries are applied. */
  takeLead(token: string): Promise<void>;
  /** Another process owns it now. */
  loseLead(): void;
  append(entry: PromptLogEntry): Promise<void>;
  /** Receives an entry that another process wrote. */
  receive(n: number, text: string, picture?: Uint8Array): Promise<void>;
  /** Reads and applies missed entries. */
  catchUp(): Promise<void>;
  /** Applies the end of a prompt whose entries are gone. */
  finish(kind: 'recorded' | 'removed'): Promise<void>;
  receivedElsewhere(audience: ReceiverGroup, upTo: number): void;
  /** Resolves when all received entries are applied. */
  whenIdle(): Promise<void>;
  readonly hasEnded: () => boolean;
};

/** Writes and reads entries. */
export type EntryStore = {
  /** False: this process is not the owner any more. */
  write(
    stream: LogStream,
    entry: { readonly n: number; readonly text: string; readonly picture?: Uint8Array },
    isLast: boolean,
  ): Promise<boolean>;
  /** The entries after position `n`. */
  after(key: string, n: number): Promise<readonly { readonly n: number; readonly text: string }[]>;
  /** The positions up to which sockets have received it. */
  receivedUpTo(key: string): Promise<ReceivedUpTo>;
};

/** Runs everything of one prompt in order. */
export function createLogStream(key: string, store: EntryStore): LogStream {
  const enqueue = createMutex();
  let subscriber: LogSubscriber | undefined;
  let user = '';
  let token: string | undefined;
  let lastRead = 0;
  let hasEnded = false;

  async function apply(n: number, entry: PromptLogEntry): Promise<void> {
    lastRead = n;
    if (entry.kind === 'recorded' || entry.kind === 'removed') hasEnded = true;
    await subscriber?.apply(entry, n);
  }

  async function readMissing(): Promise<void> {
    for (const { n, text } of await store.after(key, lastRead)) await apply(n, decodeEntry(text));
  }

  const stream: LogStream = {
    key,
    user: () => user,
    token: () => token,
    subscribe: (owner, logSubscriber, since) => {
      user = owner;
      // A new prompt of this process has no entries yet.
      if (token !== undefined) {
        subscriber = logSubscriber;
        return Promise.resolve();
      }
      return enqueue(async () => {
        subscriber = logSubscriber;
        logSubscriber.onSubscribed(await store.receivedUpTo(key), since);
        lastRead = 0;
        await readMissing();
      });
    },
    startNew: (newToken) => void (token = newToken),
    takeLead: (newToken) =>
      enqueue(async () => {
        await readMissing();
        token = newToken;
      }),
    loseLead() {
      if (token === undefined) return;
      token = undefined;
      subscriber?.onLeadershipLost();
      // Entries of the new owner were taken for echoes of our own: read them.
      stream.catchUp().catch(ignoreError);
    },
    append: async (entry) => {
      // Fail at once: entries of the new owner may wait for this caller.
      if (token === undefined) throw new LeadershipLost();
      await enqueue(async () => {
        if (token === undefined) throw new LeadershipLost();
        const n = lastRead + 1;
        const isOurs = await store.write(
          stream,
          { n, ...encodeEntry(entry) },
          entry.kind === 'recorded',
        );
        if (!isOurs) stream.loseLead();
        if (!isOurs) throw new LeadershipLost();
        if (entry.kind === 'recorded') token = undefined;
        await apply(n, entry);
      });
    },
    receive: (n, text, picture) =>
      enqueue(async () => {
        if (n <= lastRead || token !== undefined) return;
        if (n === lastRead + 1) await apply(n, decodeEntry(text, picture));
        else await readMissing();
      }),
    catchUp: () => enqueue(async () => (token === undefined ? readMissing() : undefined)),
    finish: (kind) =>
      enqueue(async () => {
        if (!hasEnded && token === undefined) await apply(lastRead + 1, { kind });
      }),
    receivedElsewhere: (audience, upTo) => subscriber?.onReceivedElsewhere(audience, upTo),
    whenIdle: () => enqueue(async () => {}),
    hasEnded: () => hasEnded,
  };
  return stream;
}

function ignoreError(): void {}
