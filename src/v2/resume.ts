import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** How to go on with bytes that broke off. */
export type Continuation = {
  readonly startByte: number;
  /** The last one, inclusive. */
  readonly endByte: number;
  /** The bytes from there on; `changed`: there are others now; `failed`: another try may help. */
  readonly reopen: (fromByte: number) => Promise<Readable | 'changed' | 'failed'>;
  readonly tries: number;
  readonly waitMs: number;
};

/** One stream out of a body and its continuations; what cannot be completed ends in an error. */
export function resumable(first: Readable, plan: Continuation): Readable {
  let current = first;
  let at = plan.startByte;
  let triesLeft = plan.tries;
  const whole = new Readable({
    read: () => void current.resume(),
    destroy(error, done) {
      current.destroy();
      done(error);
    },
  });

  function attach(body: Readable): void {
    let isOver = false;
    const end = (cause: Error): void => {
      if (isOver) return;
      isOver = true;
      proceed(cause).catch((error: Error) => whole.destroy(error));
    };
    current = body;
    body.on('data', (chunk: Buffer) => {
      at += chunk.length;
      if (!whole.push(chunk)) body.pause();
    });
    body.once('error', end);
    body.once('end', () => {
      if (at > plan.endByte) whole.push(null);
      else end(new Error('the bytes ended early'));
    });
  }

  async function proceed(cause: Error): Promise<void> {
    while (!whole.destroyed && triesLeft-- > 0) {
      await delay(plan.waitMs);
      const next = whole.destroyed ? 'changed' : await plan.reopen(at);
      if (next === 'changed') break;
      if (next === 'failed') continue;
      if (whole.destroyed) return void next.destroy();
      return attach(next);
    }
    whole.destroy(cause);
  }

  attach(first);
  return whole;
}
