import type { Redis, RedisLinks } from '../redis.ts';
import type { Audience } from '../v1/prompt-journal.ts';

/** What processes tell each other about prompts. */
export type News = {
  readonly onEntry: (key: string, n: number, text: string, picture?: Uint8Array) => void;
  readonly onReceived: (key: string, audience: Audience, upTo: number, instance: string) => void;
  readonly onFetched: (user: string, promptId: string) => void;
  readonly onCancel: (key: string) => void;
  /** Some process gave back what it looked after. */
  readonly onVacant: () => void;
  /** Nothing is heard before this, and again after a time of which nothing was heard. */
  readonly onListening: () => void;
};

/** The ear on all of it. */
export type Ear = {
  /** Resolves when everything is heard that was said before. */
  settled(): Promise<void>;
  /** Previews for this user are wanted, or no longer. */
  watch(user: string, isThere: boolean): void;
  open(): Promise<void>;
  close(): void;
};

/** A connection that says nothing for so long has died without a word. */
const SILENT_MS = 5000;

export function createEar({ links, news }: { links: RedisLinks; news: News }): Ear {
  const { channels } = links;
  const redis: Redis = links.connect();
  const events = `${channels}events`;
  const previews = `${channels}previews:`;
  /** The picture of the entry that comes next. */
  let picture: { readonly name: string; readonly bytes: Buffer } | undefined;
  let isOpen = false;

  function hearPicture(message: Buffer): void {
    const first = message.indexOf(0x20);
    const end = message.indexOf(0x20, first + 1);
    picture = { name: message.toString('latin1', 0, end), bytes: message.subarray(end + 1) };
  }

  function hearEntry(body: string): void {
    const end = body.indexOf(' ', body.indexOf(' ') + 1);
    const name = body.slice(0, end);
    const [key = '', n = ''] = name.split(' ');
    const bytes = picture?.name === name ? picture.bytes : undefined;
    picture = undefined;
    news.onEntry(key, Number(n), body.slice(end + 1), bytes);
  }

  function hearEvent(message: string): void {
    const body = message.slice(2);
    if (message.startsWith('e')) return hearEntry(body);
    const [key = '', upTo = '', instance = '', audience = 'client'] = body.split(' ');
    if (message.startsWith('r')) {
      return news.onReceived(key, audience as Audience, Number(upTo), instance);
    }
    if (message.startsWith('f')) return news.onFetched(textIn(key), textIn(upTo));
    if (message.startsWith('c')) return news.onCancel(key);
    return news.onVacant();
  }

  async function listen(): Promise<void> {
    await redis.subscribe(events);
    news.onListening();
  }

  redis.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    if (channel.toString() === events) hearEvent(message.toString());
    else hearPicture(message);
  });
  redis.on('ready', () => {
    if (isOpen) listen().catch(ignore);
  });

  return {
    async settled() {
      const silent = setTimeout(() => redis.disconnect(true), SILENT_MS);
      try {
        await redis.ping();
      } finally {
        clearTimeout(silent);
      }
    },
    watch(user, isThere) {
      const channel = previews + user;
      const done = isThere ? redis.subscribe(channel) : redis.unsubscribe(channel);
      done.catch(ignore);
    },
    async open() {
      isOpen = true;
      await listen();
    },
    close() {
      isOpen = false;
      redis.disconnect();
    },
  };
}

/** Any text as a word of a message; its parts are separated by blanks. */
export function wordOf(text: string): string {
  return Buffer.from(text).toString('base64url');
}

function textIn(word: string): string {
  return Buffer.from(word, 'base64url').toString();
}

/** Away: it listens again when it is back. */
function ignore(): void {}
