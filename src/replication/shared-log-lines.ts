import { randomUUID } from 'node:crypto';
import { type RedisConnections, countSubscribers } from '../redis/redis.ts';
import type { Logger } from '../observability/log.ts';
import type { SharedLogHandlers, SharedLog } from '../observability/log-subscriptions.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { createDeferred } from '../lib/concurrency.ts';

type Options = {
  readonly links: RedisConnections;
  /** Unique id of this process. */
  readonly instance: string;
  readonly handlers: SharedLogHandlers;
  readonly log: Logger;
};

type Entries = ReturnType<SharedLogHandlers['entries']>;

type Message =
  | { readonly kind: 'subscribe'; readonly user: string; readonly clientId: string }
  | { readonly kind: 'unsubscribe'; readonly user: string; readonly clientId: string }
  | { readonly kind: 'lines'; readonly user: string; readonly entries: Entries }
  | { readonly kind: 'ask'; readonly user: string; readonly id: string }
  | { readonly kind: 'answer'; readonly id: string; readonly entries: Entries };

type Envelope = Message & { readonly from: string };

/** As many as one process keeps. */
const MAX_SUBSCRIPTIONS = 2000;
const SUBSCRIPTION_TTL_MS = 24 * 60 * 60_000;
/** How long a client waits for the lines of a process that does not answer. */
const GATHER_TIMEOUT_MS = 500;

/** The channel that each server listens on as long as it runs. */
export function logChannel(channels: string): string {
  return `${channels}logs`;
}

/**
 * One channel for all processes, and one for the answers to each. Subscriptions are stored for
 * processes that start later.
 */
export async function openSharedLog({
  links,
  instance,
  handlers,
  log,
}: Options): Promise<SharedLog> {
  const { commands, prefix, channels } = links;
  const subscriber = links.subscriber();
  const all = logChannel(channels);
  const inbox = (of: string): string => `${channels}logs:${of}`;
  const subscriptionsKey = `${prefix}logsubscriptions`;
  const pendingRequests = new Map<string, (entries: Entries) => void>();

  const encode = (message: Message): string => JSON.stringify({ ...message, from: instance });

  function logFailure(error: unknown): void {
    log.debug({ event: 'replication.log_failed', err: error }, 'could not share log lines');
  }

  /** Sends nothing while Redis is unreachable: it would wait in memory. */
  async function send(channel: string, message: Message): Promise<void> {
    if (commands.status === 'ready') await commands.publish(channel, encode(message));
  }

  function receive(envelope: Envelope): void {
    if (envelope.from === instance) return;
    switch (envelope.kind) {
      case 'subscribe':
        return handlers.onSubscribe(envelope.user, envelope.clientId);
      case 'unsubscribe':
        return handlers.onUnsubscribe(envelope.user, envelope.clientId);
      case 'lines':
        return handlers.onEntries(envelope.user, envelope.entries);
      case 'ask':
        return answer(envelope.from, envelope);
      case 'answer':
        return pendingRequests.get(envelope.id)?.(envelope.entries);
    }
  }

  function answer(to: string, { id, user }: { readonly id: string; readonly user: string }): void {
    send(inbox(to), { kind: 'answer', id, entries: handlers.entries(user) }).catch(logFailure);
  }

  /** Also run after a reconnect: messages in between were lost. */
  async function loadSubscriptions(): Promise<void> {
    for (const member of await commands.zrange(subscriptionsKey, 0, '-1')) {
      const [user = '', clientId = ''] = JSON.parse(member) as string[];
      handlers.onSubscribe(user, clientId);
    }
  }

  async function store(kind: 'subscribe' | 'unsubscribe', user: string, clientId: string) {
    const member = JSON.stringify([user, clientId]);
    const steps = commands.multi();
    if (kind === 'unsubscribe') steps.zrem(subscriptionsKey, member);
    else steps.zadd(subscriptionsKey, Date.now(), member);
    steps
      .zremrangebyrank(subscriptionsKey, 0, -MAX_SUBSCRIPTIONS - 1)
      .pexpire(subscriptionsKey, SUBSCRIPTION_TTL_MS);
    await steps.publish(all, encode({ kind, user, clientId })).exec();
  }

  async function change(...subscription: Parameters<typeof store>): Promise<void> {
    await completesWithin(GATHER_TIMEOUT_MS, store(...subscription).catch(logFailure));
  }

  async function ask(user: string, id: string, onEntries: (entries: Entries) => void) {
    let missing = (await countSubscribers(links, all)) - 1;
    const complete = createDeferred();
    pendingRequests.set(id, (entries) => {
      onEntries(entries);
      if (--missing === 0) complete.resolve();
    });
    if (missing <= 0) return;
    await send(all, { kind: 'ask', user, id });
    await complete.promise;
  }

  const onMessage = (text: Buffer): void => receive(JSON.parse(text.toString()) as Envelope);
  const load = (): Promise<void> => loadSubscriptions().catch(logFailure);
  subscriber.onReconnect(() => void load());
  await Promise.all([all, inbox(instance)].map((name) => subscriber.subscribe(name, onMessage)));
  await load();

  return {
    subscribe: (user, clientId) => change('subscribe', user, clientId),
    unsubscribe: (user, clientId) => change('unsubscribe', user, clientId),
    publish: (user, entries) => void send(all, { kind: 'lines', user, entries }).catch(logFailure),
    async gather(user) {
      const id = randomUUID();
      const found: Entries[number][] = [];
      const asked = ask(user, id, (entries) => found.push(...entries)).catch(logFailure);
      await completesWithin(GATHER_TIMEOUT_MS, asked);
      pendingRequests.delete(id);
      return found;
    },
    close: () => subscriber.close(),
  };
}
