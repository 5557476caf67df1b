import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FairQueue } from '../../../src/engine/jobs/fair-order.ts';

type Job = { readonly id: string; readonly user: string; readonly order: number };

/** Jobs named after their user, in the order in which they arrive. */
function jobs(user: string, count: number, first = 0): Job[] {
  return Array.from({ length: count }, (_, i) => ({ id: `${user}${first + i}`, user, order: 0 }));
}

function queueOf(...arriving: readonly Job[]) {
  const queue = new FairQueue<Job>();
  for (const job of arriving) queue.add(job);
  return queue;
}

describe('turns between users', () => {
  test('a user who keeps submitting has no more turns than one who has submitted all', () => {
    const queue = queueOf(...jobs('a', 100));
    const turns: string[] = [];
    for (let turn = 0; turn < 40; turn++) {
      queue.add({ id: `b${turn}`, user: 'b', order: -turn });
      const job = queue.take()!;
      turns.push(job.user);
      queue.ended(job);
    }
    expect(turns.filter((user) => user === 'a')).toHaveLength(20);
  });

  test('ever new users do not starve one who waits', () => {
    const queue = queueOf(...jobs('a', 2));
    const turns: string[] = [];
    for (let turn = 0; turn < 10; turn++) {
      queue.add({ id: `new${turn}`, user: `new${turn}`, order: 0 });
      queue.add({ id: `other${turn}`, user: `other${turn}`, order: 0 });
      const job = queue.take()!;
      turns.push(job.id);
      queue.ended(job);
    }
    expect(turns.slice(0, 5)).toEqual(['a0', 'new0', 'other0', 'a1', 'new1']);
  });

  test('the order that is shown is the order in which jobs are taken', () => {
    const user = fc.constantFrom('a', 'b', 'c', 'd');
    const arriving = fc.array(fc.record({ user, order: fc.integer({ min: -3, max: 3 }) }));
    fc.assert(
      fc.property(arriving, fc.nat(5), (made, running) => {
        const queue = queueOf(...made.map((job, i) => ({ ...job, id: String(i) })));
        for (let i = 0; i < running; i++) queue.take();
        const shown = queue.waiting().map(({ id }) => id);
        const taken = shown.map(() => queue.take()?.id);
        expect(taken).toEqual(shown);
        expect(queue.take()).toBeUndefined();
      }),
    );
  });
});
