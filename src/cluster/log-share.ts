import { randomUUID } from 'node:crypto';
import type { RedisLinks } from '../redis.ts';
import type { Logger } from '../telemetry.ts';
import type { LogEar, LogShare } from '../v1/log-share.ts';
import { within } from '../within.ts';

type Options = {
  readonly links: RedisLinks;
  /** Tells this process from all others. */
  readonly instance: string;
  readonly ear: LogEar;
  readonly log: Logger;
};

type Entries = ReturnType<LogEar['entries']>;

type Message =
  | { readonly kind: 'subscribe'; readonly user: string; readonly clientId: string }
  | { readonly kind: 'unsubscribe'; readonly user: string; readonly clientId: string }
  | { readonly kind: 'lines'; readonly user: string; readonly entries: Entries }
  | { readonly kind: 'ask'; readonly user: string; readonly id: string }
  | { readonly kind: 'answer'; readonly id: string; readonly entries: Entries };

type Letter = Message & { readonly from: string };

/** As many as one process remembers. */
const SUBSCRIPTIONS_KEPT = 2000;
const KEPT_MS = 24 * 60 * 60_000;
/** How long a client waits for the lines of a replica that does not answer. */
const PATIENCE_MS = 500;

/** One channel for all, one for the answers to each; who subscribed is kept for who starts later. */
export async function openSharedLog({ links, instance, ear, log }: Options): Promise<LogShare> {
  const { commands, prefix, channels } = links;
  const redis = links.connect();
  const all = `${channels}logs`;
  const inbox = (of: string): string => `${channels}logs:${of}`;
  const kept = `${prefix}logsubscriptions`;
  const questions = new Map<string, (entries: Entries) => void>();

  const written = (message: Message): string => JSON.stringify({ ...message, from: instance });

  function complain(error: unknown): void {
    log.debug({ err: error }, 'the log could not be shared');
  }

  /** What cannot go now would wait in memory for a Redis that is away. */
  async function send(channel: string, message: Message): Promise<number> {
    if (commands.status !== 'ready') return 0;
    return await commands.publish(channel, written(message));
  }

  function hear(letter: Letter): void {
    if (letter.from === instance) return;
    switch (letter.kind) {
      case 'subscribe':
        return ear.subscribed(letter.user, letter.clientId);
      case 'unsubscribe':
        return ear.unsubscribed(letter.user, letter.clientId);
      case 'lines':
        return ear.lines(letter.user, letter.entries);
      case 'ask':
        return answer(letter.from, letter);
      case 'answer':
        return questions.get(letter.id)?.(letter.entries);
    }
  }

  function answer(to: string, { id, user }: { readonly id: string; readonly user: string }): void {
    send(inbox(to), { kind: 'answer', id, entries: ear.entries(user) }).catch(complain);
  }

  /** Also after the connection was away: what was said meanwhile was not heard. */
  async function learn(): Promise<void> {
    for (const member of await commands.zrange(kept, 0, '-1')) {
      const [user = '', clientId = ''] = JSON.parse(member) as string[];
      ear.subscribed(user, clientId);
    }
  }

  async function change(kind: 'subscribe' | 'unsubscribe', user: string, clientId: string) {
    const member = JSON.stringify([user, clientId]);
    const steps = commands.multi();
    if (kind === 'unsubscribe') steps.zrem(kept, member);
    else steps.zadd(kept, Date.now(), member);
    steps.zremrangebyrank(kept, 0, -SUBSCRIPTIONS_KEPT - 1).pexpire(kept, KEPT_MS);
    await steps.publish(all, written({ kind, user, clientId })).exec();
  }

  async function ask(user: string, id: string, hearEntries: (entries: Entries) => void) {
    let missing = 0;
    let done = (): void => {};
    const complete = new Promise<void>((resolve) => (done = resolve));
    questions.set(id, (entries) => {
      hearEntries(entries);
      if (--missing === 0) done();
    });
    // This process hears its own question; the first answers may be faster than the count.
    missing += (await send(all, { kind: 'ask', user, id })) - 1;
    if (missing > 0) await complete;
  }

  redis.on('message', (_channel: string, text: string) => hear(JSON.parse(text) as Letter));
  redis.on('ready', () => void learn().catch(complain));
  await redis.subscribe(all, inbox(instance));
  await learn().catch(complain);

  return {
    subscribe: async (user, clientId) =>
      void (await within(PATIENCE_MS, change('subscribe', user, clientId).catch(complain))),
    unsubscribe: async (user, clientId) =>
      void (await within(PATIENCE_MS, change('unsubscribe', user, clientId).catch(complain))),
    tell: (user, entries) => void send(all, { kind: 'lines', user, entries }).catch(complain),
    async gather(user) {
      const id = randomUUID();
      const found: Entries[number][] = [];
      const asked = ask(user, id, (entries) => found.push(...entries)).catch(complain);
      await within(PATIENCE_MS, asked);
      questions.delete(id);
      return found;
    },
    close: () => redis.disconnect(),
  };
}
