import { randomUUID } from 'node:crypto';
import { type RedisConnections, countSubscribers } from '../redis/redis.ts';
import type { RedisSubscriber } from '../redis/redis-subscriber.ts';
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

/** Opens the exchange of log lines between processes. */
export async function openSharedLog(options: Options): Promise<SharedLog> {
  const sharedLog = new RedisSharedLog(options);
  await sharedLog.join();
  return sharedLog;
}

/**
 * The exchange of log lines between processes. All processes are subscribed to one channel, and each to a channel of
 * its own for answers. A process that starts asks the others for their subscriptions.
 */
class RedisSharedLog implements SharedLog {
  readonly #options: Options;
  readonly #subscriber: RedisSubscriber;
  /** The channel of all processes. */
  readonly #all: string;
  readonly #pendingRequests = new Map<string, (entries: Entries) => void>();

  constructor(options: Options) {
    this.#options = options;
    this.#subscriber = options.links.subscriber();
    this.#all = logChannel(options.links.channels);
  }

  /** Subscribes to the channels, and asks the other processes for their subscriptions. */
  async join(): Promise<void> {
    const onMessage = (text: Buffer): void =>
      this.#receive(JSON.parse(text.toString()) as Envelope);
    // Subscriptions of other processes may have been missed.
    this.#subscriber.onReconnect(() => void this.#sendToAll({ kind: 'join' }));
    const names = [this.#all, this.#inbox(this.#options.instance)];
    await Promise.all(names.map((name) => this.#subscriber.subscribe(name, onMessage)));
    await this.#sendToAll({ kind: 'join' });
  }

  subscribe(user: string, clientId: string): Promise<void> {
    return this.#sendToAll({ kind: 'subscribe', user, clientId });
  }

  unsubscribe(user: string, clientId: string): Promise<void> {
    return this.#sendToAll({ kind: 'unsubscribe', user, clientId });
  }

  publish(user: string, entries: Entries): void {
    this.#trySend(this.#all, { kind: 'lines', user, entries });
  }

  async gather(user: string): Promise<Entries> {
    const id = randomUUID();
    const found: LogEntry[] = [];
    const asked = this.#ask(user, id, (entries) => found.push(...entries)).catch(this.#logFailure);
    await completesWithin(GATHER_TIMEOUT_MS, asked);
    this.#pendingRequests.delete(id);
    return found;
  }

  close(): void {
    this.#subscriber.close();
  }

  #receive(envelope: Envelope): void {
    const { instance, panel } = this.#options;
    const { from } = envelope;
    if (from === instance) return;
    switch (envelope.kind) {
      case 'subscribe':
        return panel.add(envelope.user, envelope.clientId);
      case 'unsubscribe':
        return panel.remove(envelope.user, envelope.clientId);
      case 'join':
        for (const { user, clientId } of panel.subscriptions())
          this.#trySend(this.#inbox(from), { kind: 'subscribe', user, clientId });
        return;
      case 'lines':
        return void panel.send(envelope.user, envelope.entries);
      case 'ask':
        const { id, user } = envelope;
        const entries = panel.ownLines(user);
        return this.#trySend(this.#inbox(from), { kind: 'answer', id, entries });
      case 'answer':
        return this.#pendingRequests.get(envelope.id)?.(envelope.entries);
    }
  }

  async #ask(user: string, id: string, onEntries: (entries: Entries) => void): Promise<void> {
    let missing = (await countSubscribers(this.#options.links, this.#all)) - 1;
    const complete = createDeferred();
    this.#pendingRequests.set(id, (entries) => {
      onEntries(entries);
      if (--missing === 0) complete.resolve();
    });
    if (missing <= 0) return;
    await this.#send(this.#all, { kind: 'ask', user, id });
    await complete.promise;
  }

  async #sendToAll(message: Message): Promise<void> {
    const sent = this.#send(this.#all, message).catch(this.#logFailure);
    await completesWithin(GATHER_TIMEOUT_MS, sent);
  }

  #trySend(channel: string, message: Message): void {
    this.#send(channel, message).catch(this.#logFailure);
  }

  /** Sends nothing while Redis is unreachable, because the messages would wait in memory. */
  async #send(channel: string, message: Message): Promise<void> {
    const { links, instance } = this.#options;
    if (links.commands.status !== 'ready') return;
    await links.commands.publish(channel, JSON.stringify({ ...message, from: instance }));
  }

  /** The channel of one process. */
  #inbox(instance: string): string {
    return `${logChannel(this.#options.links.channels)}:${instance}`;
  }

  readonly #logFailure = (error: unknown): void => {
    const event = 'replication.log_failed';
    this.#options.log.debug({ event, err: error }, 'could not share log lines');
  };
}
