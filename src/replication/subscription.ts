import type { Redis, RedisConnections } from '../lib/redis.ts';
import type { ReceiverGroup } from '../sockets/delivery.ts';

/** Handlers of the messages that processes send each other about prompts. */
export type SubscriptionHandlers = {
  readonly onEntry: (key: string, n: number, text: string, picture?: Uint8Array) => void;
  readonly onReceived: (key: string, group: ReceiverGroup, upTo: number, instance: string) => void;
  readonly onFetched: (user: string, promptId: string) => void;
  readonly onCancel: (key: string) => void;
  /** A process gave up its prompts. */
  readonly onVacant: () => void;
  /** Called when messages are received from now on: at the start, and after each outage. */
  readonly onListening: () => void;
};

/** The subscription to these messages. */
export type Subscription = ReturnType<typeof createSubscription>;

/** A connection without an answer for this long is dead. */
const PING_TIMEOUT_MS = 5000;

export function createSubscription({
  links,
  handlers,
}: {
  links: RedisConnections;
  handlers: SubscriptionHandlers;
}) {
  const { channels } = links;
  const redis: Redis = links.connect();
  const servers = `${channels}servers`;
  const prompts = `${channels}prompts:`;
  const previews = `${channels}previews:`;
  /** The picture of the next entry. */
  let picture: { readonly name: string; readonly bytes: Buffer } | undefined;
  const users = new Set<string>();
  let isOpen = false;

  function receivePicture(message: Buffer): void {
    const first = message.indexOf(0x20);
    const end = message.indexOf(0x20, first + 1);
    picture = { name: message.toString('latin1', 0, end), bytes: message.subarray(end + 1) };
  }

  function receiveEntry(body: string): void {
    const end = body.indexOf(' ', body.indexOf(' ') + 1);
    const name = body.slice(0, end);
    const [key = '', n = ''] = name.split(' ');
    const bytes = picture?.name === name ? picture.bytes : undefined;
    picture = undefined;
    handlers.onEntry(key, Number(n), body.slice(end + 1), bytes);
  }

  function receive(user: string, message: string): void {
    const body = message.slice(2);
    if (message.startsWith('e')) return receiveEntry(body);
    const [key = '', upTo = '', instance = '', group = 'client'] = body.split(' ');
    if (message.startsWith('r')) {
      return handlers.onReceived(key, group as ReceiverGroup, Number(upTo), instance);
    }
    if (message.startsWith('f')) return handlers.onFetched(user, decodeWord(key));
    return handlers.onCancel(key);
  }

  async function listen(): Promise<void> {
    await redis.subscribe(servers, ...[...users].map((user) => prompts + user));
    handlers.onListening();
  }

  redis.on('messageBuffer', (channelBytes: Buffer, message: Buffer) => {
    const channel = channelBytes.toString();
    if (channel.startsWith(prompts)) receive(channel.slice(prompts.length), message.toString());
    else if (channel === servers) handlers.onVacant();
    else receivePicture(message);
  });
  redis.on('ready', () => {
    if (isOpen) listen().catch(ignoreError);
  });

  return {
    /** Resolves when all messages sent before are received. */
    async whenCaughtUp(): Promise<void> {
      const timer = setTimeout(() => redis.disconnect(true), PING_TIMEOUT_MS);
      try {
        await redis.ping();
      } finally {
        clearTimeout(timer);
      }
    },
    /** Resolves when everything said of this user's prompts is received from now on. */
    async follow(user: string): Promise<void> {
      users.add(user);
      await redis.subscribe(prompts + user);
    },
    unfollow(user: string): void {
      users.delete(user);
      redis.unsubscribe(prompts + user).catch(ignoreError);
    },
    /** Starts or stops receiving previews of this user. */
    watch(user: string, isThere: boolean): void {
      const channel = previews + user;
      const done = isThere ? redis.subscribe(channel) : redis.unsubscribe(channel);
      done.catch(ignoreError);
    },
    async open(): Promise<void> {
      isOpen = true;
      await listen();
    },
    close(): void {
      isOpen = false;
      redis.disconnect();
    },
  };
}

/** Encodes any text as one word: parts of a message are separated by blanks. */
export function encodeWord(text: string): string {
  return Buffer.from(text).toString('base64url');
}

function decodeWord(word: string): string {
  return Buffer.from(word, 'base64url').toString();
}

/** Redis is unreachable: the subscription is renewed when it is back. */
function ignoreError(): void {}
