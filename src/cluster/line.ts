import {
  type Audience,
  type Entry,
  type HeardSince,
  type Hearer,
  LeadLost,
  type ReceivedUpTo,
} from '../v1/prompt-journal.ts';
import { entryOf, textOf } from './entry-text.ts';

/** One prompt as this process hears of it. */
export type Line = {
  readonly key: string;
  readonly user: () => string;
  /** Under which this process looks after it; `undefined`: it does not. */
  readonly token: () => string | undefined;
  join(user: string, hearer: Hearer, since: HeardSince): Promise<void>;
  /** It is new, and this process looks after it. */
  begin(token: string): void;
  /** This process looks after it from now on, once it has heard everything. */
  lead(token: string): Promise<void>;
  /** Another process does. */
  lose(): void;
  append(entry: Entry): Promise<void>;
  /** An entry another process wrote, as it comes. */
  hear(n: number, text: string, picture?: Uint8Array): Promise<void>;
  /** Hears what it has missed. */
  catchUp(): Promise<void>;
  /** How it ended is known, and nothing else is any more. */
  conclude(kind: 'recorded' | 'removed'): Promise<void>;
  receivedElsewhere(audience: Audience, upTo: number): void;
  /** Resolves when everything that came is heard. */
  idle(): Promise<void>;
  readonly isOver: () => boolean;
};

/** How entries are written and read. */
export type EntryStore = {
  /** False: it is no longer ours. */
  write(
    line: Line,
    entry: { readonly n: number; readonly text: string; readonly picture?: Uint8Array },
    isLast: boolean,
  ): Promise<boolean>;
  /** Those after the `n`th. */
  after(key: string, n: number): Promise<readonly { readonly n: number; readonly text: string }[]>;
  /** Up to where sockets had received it. */
  mark(key: string): Promise<ReceivedUpTo>;
};

/** Everything of a prompt happens one thing after the other. */
export function createLine(key: string, store: EntryStore): Line {
  let chain: Promise<unknown> = Promise.resolve();
  let hearer: Hearer | undefined;
  let user = '';
  let token: string | undefined;
  let heard = 0;
  let isOver = false;

  function inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = chain.then(act);
    chain = turn.catch(() => {});
    return turn;
  }

  async function apply(n: number, entry: Entry): Promise<void> {
    heard = n;
    if (entry.kind === 'recorded' || entry.kind === 'removed') isOver = true;
    await hearer?.apply(entry, n);
  }

  async function readOn(): Promise<void> {
    for (const { n, text } of await store.after(key, heard)) await apply(n, entryOf(text));
  }

  const line: Line = {
    key,
    user: () => user,
    token: () => token,
    join: (theirs, ear, since) => {
      user = theirs;
      // A new prompt of our own: nothing was said yet.
      if (token !== undefined) {
        hearer = ear;
        return Promise.resolve();
      }
      return inTurn(async () => {
        hearer = ear;
        ear.joined(await store.mark(key), since);
        heard = 0;
        await readOn();
      });
    },
    begin: (fresh) => void (token = fresh),
    lead: (fresh) =>
      inTurn(async () => {
        await readOn();
        token = fresh;
      }),
    lose() {
      if (token === undefined) return;
      token = undefined;
      hearer?.lost();
      // What others wrote meanwhile was taken for an echo of our own.
      line.catchUp().catch(ignore);
    },
    append: async (entry) => {
      // At once: what others wrote may be kept waiting by whoever asks.
      if (token === undefined) throw new LeadLost();
      await inTurn(async () => {
        if (token === undefined) throw new LeadLost();
        const n = heard + 1;
        const isOurs = await store.write(line, { n, ...textOf(entry) }, entry.kind === 'recorded');
        if (!isOurs) line.lose();
        if (!isOurs) throw new LeadLost();
        if (entry.kind === 'recorded') token = undefined;
        await apply(n, entry);
      });
    },
    hear: (n, text, picture) =>
      inTurn(async () => {
        if (n <= heard || token !== undefined) return;
        if (n === heard + 1) await apply(n, entryOf(text, picture));
        else await readOn();
      }),
    catchUp: () => inTurn(async () => (token === undefined ? readOn() : undefined)),
    conclude: (kind) =>
      inTurn(async () => {
        if (!isOver && token === undefined) await apply(heard + 1, { kind });
      }),
    receivedElsewhere: (audience, upTo) => hearer?.receivedElsewhere(audience, upTo),
    idle: async () => void (await chain),
    isOver: () => isOver,
  };
  return line;
}

function ignore(): void {}
