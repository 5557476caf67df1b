import { randomUUID } from 'node:crypto';
import { type RedisConnections, countSubscribers } from '../redis/redis.ts';
import type { Logger } from '../observability/log.ts';
import type { LogEntry, LogPanel, SharedLog } from '../observability/log-panel.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { createDeferred } from '../lib/concurrency.ts';

type Options = {
  readonly links: RedisConnections;
  /** Unique id of this process. */
  readonly instance: string;
  readonly panel: LogPanel;
  readonly log: Logger;
};

type Entries = readonly LogEntry[];

type Message =
  | { readonly kind: 'subscribe' | 'unsubscribe'; readonly user: string; readonly clientId: string }
  | { readonly kind: 'join' }
  | { readonly kind: 'lines'; readonly user: string; readonly entries: Entries }
  | { readonly kind: 'ask'; readonly user: string; readonly id: string }
  | { readonly kind: 'answer'; readonly id: string; readonly entries: Entries };

type Envelope = Message & { readonly from: string };

/** How long a call waits for the log lines of a process that does not answer. */
const GATHER_TIMEOUT_MS = 500;

/** The name of the channel to which each server is subscribed while it runs. */
export function logChannel(channels: string): string {
  return `${channels}logs`;
}

/**
 * Opens the exchange of log lines between processes. All processes are subscribed to one channel, and each to a
 * channel of its own for answers. A process that starts asks the others for their subscriptions.
 */
export async function openSharedLog(options: Options): Promise<SharedLog> {
  const { links, instance, panel, log } = options;
  const { commands, channels } = links;
  const subscriber = links.subscriber();
  const all = logChannel(channels);
  const inbox = (of: string): string => `${channels}logs:${of}`;
  const pendingRequests = new Map<string, (entries: Entries) => void>();

  function logFailure(error: unknown): void {
    log.debug({ event: 'replication.log_failed', err: error }, 'could not share log lines');
  }

  /** Sends nothing while Redis is unreachable, because the messages would wait in memory. */
  async function send(channel: string, message: Message): Promise<void> {
    if (commands.status !== 'ready') return;
    await commands.publish(channel, JSON.stringify({ ...message, from: instance }));
  }

  function receive(envelope: Envelope): void {
    const { from } = envelope;
    if (from === instance) return;
    switch (envelope.kind) {
      case 'subscribe':
        return panel.add(envelope.user, envelope.clientId);
      case 'unsubscribe':
        return panel.remove(envelope.user, envelope.clientId);
      case 'join':
        for (const { user, clientId } of panel.subscriptions())
          answer(from, { kind: 'subscribe', user, clientId });
        return;
      case 'lines':
        return void panel.send(envelope.user, envelope.entries);
      case 'ask':
        const { id, user } = envelope;
        return answer(from, { kind: 'answer', id, entries: panel.ownLines(user) });
      case 'answer':
        return pendingRequests.get(envelope.id)?.(envelope.entries);
    }
  }

  function answer(to: string, message: Message): void {
    send(inbox(to), message).catch(logFailure);
  }

  async function sendToAll(message: Message): Promise<void> {
    await completesWithin(GATHER_TIMEOUT_MS, send(all, message).catch(logFailure));
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
  // Subscriptions of other processes may have been missed.
  subscriber.onReconnect(() => void sendToAll({ kind: 'join' }));
  await Promise.all([all, inbox(instance)].map((name) => subscriber.subscribe(name, onMessage)));
  await sendToAll({ kind: 'join' });

  return {
    subscribe: (user, clientId) => sendToAll({ kind: 'subscribe', user, clientId }),
    unsubscribe: (user, clientId) => sendToAll({ kind: 'unsubscribe', user, clientId }),
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
