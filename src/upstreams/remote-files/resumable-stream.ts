import { Readable } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';

/** How to continue an interrupted transfer. */
export type ResumePlan = {
  readonly startByte: number;
  /** The last one, inclusive. */
  readonly endByte: number;
  /** The bytes from there on; `changed`: there are others now; `failed`: another try may help. */
  readonly reopen: (fromByte: number) => Promise<Readable | 'changed' | 'failed'>;
  readonly tries: number;
  readonly waitMs: number;
  readonly clock: Clock;
};

/** Joins a body and its continuations into one stream; it fails when it cannot be completed. */
export function resumable(first: Readable, plan: ResumePlan): Readable {
  let current = first;
  let nextByte = plan.startByte;
  let triesLeft = plan.tries;
  const output = new Readable({
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
      reopenBody(cause).catch((error: Error) => output.destroy(error));
    };
    current = body;
    body.on('data', (chunk: Buffer) => {
      nextByte += chunk.length;
      if (!output.push(chunk)) body.pause();
    });
    body.once('error', end);
    body.once('end', () => {
      if (nextByte > plan.endByte) output.push(null);
      else end(new Error('the bytes ended early'));
    });
  }

  async function reopenBody(cause: Error): Promise<void> {
    while (!output.destroyed && triesLeft-- > 0) {
      await plan.clock.sleep(plan.waitMs);
      const next = output.destroyed ? 'changed' : await plan.reopen(nextByte);
      if (next === 'changed') break;
      if (next === 'failed') continue;
      if (output.destroyed) return void next.destroy();
      return attach(next);
    }
    output.destroy(cause);
  }

  attach(first);
  return output;
}
