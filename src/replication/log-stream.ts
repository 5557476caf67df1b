import {
  type ReceiverGroup,
  type PromptLogEntry,
  type SubscribedSince,
  type LogSubscriber,
  LeadershipLost,
  type ReceivedUpTo,
} from '../prompts/prompt-event-log.ts';
import { decodeEntry, encodeEntry } from './entry-codec.ts';

/** One prompt as this process hears of it. */
export type LogStream = {
  readonly key: string;
  readonly user: () => string;
  /** Under which this process looks after it; `undefined`: it does not. */
  readonly token: () => string | undefined;
  subscribe(user: string, subscriber: LogSubscriber, since: SubscribedSince): Promise<void>;
  /** It is new, and this process looks after it. */
  startNew(token: string): void;
  /** This process looks after it from now on, once it has heard everything. */
  takeLead(token: string): Promise<void>;
  /** Another process does. */
  loseLead(): void;
  append(entry: PromptLogEntry): Promise<void>;
  /** An entry another process wrote, as it comes. */
  receive(n: number, text: string, picture?: Uint8Array): Promise<void>;
  /** Hears what it has missed. */
  catchUp(): Promise<void>;
  /** How it ended is known, and nothing else is any more. */
  finish(kind: 'recorded' | 'removed'): Promise<void>;
  receivedElsewhere(audience: ReceiverGroup, upTo: number): void;
  /** Resolves when everything that came is heard. */
  whenIdle(): Promise<void>;
  readonly hasEnded: () => boolean;
};

/** How entries are written and read. */
export type EntryStore = {
  /** False: it is no longer ours. */
  write(
    stream: LogStream,
    entry: { readonly n: number; readonly text: string; readonly picture?: Uint8Array },
    isLast: boolean,
  ): Promise<boolean>;
  /** Those after the `n`th. */
  after(key: string, n: number): Promise<readonly { readonly n: number; readonly text: string }[]>;
  /** Up to where sockets had received it. */
  receivedUpTo(key: string): Promise<ReceivedUpTo>;
};

/** Everything of a prompt happens one thing after the other. */
export function createLogStream(key: string, store: EntryStore): LogStream {
  let chain: Promise<unknown> = Promise.resolve();
  let subscriber: LogSubscriber | undefined;
  let user = '';
  let token: string | undefined;
  let lastRead = 0;
  let hasEnded = false;

  function enqueue<T>(act: () => Promise<T>): Promise<T> {
    const task = chain.then(act);
    chain = task.catch(() => {});
    return task;
  }

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
      // A new prompt of our own: nothing was said yet.
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
      // What others wrote meanwhile was taken for an echo of our own.
      stream.catchUp().catch(ignoreError);
    },
    append: async (entry) => {
      // At once: what others wrote may be kept waiting by whoever asks.
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
    whenIdle: async () => void (await chain),
    hasEnded: () => hasEnded,
  };
  return stream;
}

function ignoreError(): void {}
