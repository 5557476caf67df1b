import type { RedisSubscriber } from '../redis/redis-subscriber.ts';
import type { ReceiverGroup } from '../sockets/delivery.ts';

/** Handlers of the messages that processes send each other about prompts. */
export type SubscriptionHandlers = {
  readonly onEntry: (key: string, n: number, text: string, picture?: Uint8Array) => void;
  readonly onReceived: (key: string, group: ReceiverGroup, upTo: number, instance: string) => void;
  readonly onFetched: (user: string, promptId: string) => void;
  /** `sender`: empty for a process of an earlier version. */
  readonly onCancel: (key: string, sender: string) => void;
};

/** The messages about the users of one partition, in the order in which their Redis has sent them. */
export class Subscription {
  readonly #subscriber: RedisSubscriber;
  readonly #start: string;
  readonly #handlers: SubscriptionHandlers;
  /** The picture of the next entry. */
  #picture: { readonly name: string; readonly bytes: Buffer } | undefined;

  /** `channels`: each channel begins with this. */
  constructor(subscriber: RedisSubscriber, channels: string, handlers: SubscriptionHandlers) {
    this.#subscriber = subscriber;
    this.#start = channels;
    this.#handlers = handlers;
  }

  /** Resolves when everything said of this user's prompts is received from now on. */
  async follow(user: string): Promise<void> {
    await this.#subscriber.subscribe(`${this.#start}prompts:${user}`, this.#receiveText);
  }

  unfollow(user: string): void {
    this.#subscriber.unsubscribe(`${this.#start}prompts:${user}`, this.#receiveText);
  }

  /** Starts or stops receiving previews of this user. */
  watch(user: string, isThere: boolean): void {
    const channel = `${this.#start}previews:${user}`;
    if (isThere) this.#subscriber.subscribe(channel, this.#receivePicture).catch(ignoreError);
    else this.#subscriber.unsubscribe(channel, this.#receivePicture);
  }

  readonly #receivePicture = (message: Buffer): void => {
    const first = message.indexOf(0x20);
    const end = message.indexOf(0x20, first + 1);
    this.#picture = { name: message.toString('latin1', 0, end), bytes: message.subarray(end + 1) };
  };

  readonly #receiveText = (bytes: Buffer, channel: string): void => {
    const message = bytes.toString();
    const body = message.slice(2);
    if (message.startsWith('e')) return this.#receiveEntry(body);
    const [key = '', upTo = '', instance = '', group = 'client'] = body.split(' ');
    if (message.startsWith('r')) {
      return this.#handlers.onReceived(key, group as ReceiverGroup, Number(upTo), instance);
    }
    if (!message.startsWith('f')) return this.#handlers.onCancel(key, upTo);
    const user = channel.slice(`${this.#start}prompts:`.length);
    this.#handlers.onFetched(user, Buffer.from(key, 'base64url').toString());
  };

  #receiveEntry(body: string): void {
    const end = body.indexOf(' ', body.indexOf(' ') + 1);
    const name = body.slice(0, end);
    const [key = '', n = ''] = name.split(' ');
    const bytes = this.#picture?.name === name ? this.#picture.bytes : undefined;
    this.#picture = undefined;
    this.#handlers.onEntry(key, Number(n), body.slice(end + 1), bytes);
  }
}

/** Redis is unreachable: the subscription is renewed when it is back. */
function ignoreError(): void {}
