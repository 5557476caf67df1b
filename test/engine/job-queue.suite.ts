import { describe, expect, onTestFinished, test } from 'vitest';
import type {
  JobQueue,
  JobQueueWorkerOptions,
  RunOutcome,
} from '../../src/engine/jobs/job-queue.ts';

type Run = {
  readonly id: string;
  readonly stop: AbortSignal;
  end(outcome?: RunOutcome): void;
};

/** Behaviour every queue of jobs shows, whatever it is made of. */
export function jobQueueSuite(name: string, open: () => Promise<JobQueue>): void {
  /** A queue with a worker whose runs end when the test says so. */
  async function openWithWorker(concurrency = 1) {
    const queue = await open();
    const runs: Run[] = [];
    const begun: string[] = [];
    const options: JobQueueWorkerOptions = {
      concurrency,
      run: (id, stop) =>
        new Promise((resolve) => {
          begun.push(id);
          runs.push({ id, stop, end: (outcome = 'over') => resolve(outcome) });
          stop.addEventListener('abort', () => resolve('interrupted'));
        }),
      giveUp: async () => {},
    };
    const worker = queue.worker(options);
    onTestFinished(() => worker.close());
    const add = (id: string, user = 'anna', order = 0) => queue.add([{ id, user, order }]);
    const untilBegun = (ids: readonly string[]) =>
      expect.poll(() => [...begun], { interval: 5 }).toEqual(ids);
    const end = (id: string, outcome?: RunOutcome): void => {
      runs
        .splice(
          runs.findIndex((run) => run.id === id),
          1,
        )[0]
        ?.end(outcome);
    };
    return { queue, worker, runs, begun, add, end, untilBegun };
  }

  describe(`${name}`, () => {
    test('runs the jobs of a user by their order, then by arrival', async () => {
      const { queue, worker, add, end, untilBegun } = await openWithWorker();
      for (const [id, order] of Object.entries({ five: 5, one: 1, front: -2, again: 1 }))
        await add(id, 'anna', order);
      const ids = ['front', 'one', 'again', 'five'];
      expect(await queue.positions([...ids, 'unknown'])).toEqual([0, 1, 2, 3, null]);
      worker.start();
      for (let i = 0; i < ids.length; i++) {
        await untilBegun(ids.slice(0, i + 1));
        end(ids[i] ?? '');
      }
      await expect.poll(() => queue.waiting('anna')).toMatchObject({ all: 0 });
    });

    test('lets users take turns, and gives a free slot to the one with fewer jobs', async () => {
      const { queue, worker, add, end, untilBegun } = await openWithWorker(2);
      for (const id of ['a1', 'a2', 'a3', 'a4']) await add(id, 'anna');
      worker.start();
      await untilBegun(['a1', 'a2']);
      for (const id of ['b1', 'b2', 'b3']) await add(id, 'ben', 9);
      expect(await queue.positions(['b1', 'b2', 'a3', 'b3', 'a4'])).toEqual([0, 1, 2, 3, 4]);
      end('a1');
      await untilBegun(['a1', 'a2', 'b1']);
      end('a2');
      await untilBegun(['a1', 'a2', 'b1', 'a3']);
    });

    test('runs so many jobs at a time, and each once', async () => {
      const { queue, worker, begun, add, end, untilBegun } = await openWithWorker(2);
      for (const id of ['a', 'b', 'c', 'a']) await add(id);
      worker.start();
      await untilBegun(['a', 'b']);
      await add('a');
      expect(await queue.waiting('anna')).toEqual({ all: 1, own: 1 });
      end('b');
      await untilBegun(['a', 'b', 'c']);
      end('a');
      end('c');
      await expect.poll(() => queue.waiting('anna')).toMatchObject({ all: 0 });
      expect(begun).toEqual(['a', 'b', 'c']);
    });

    test('removes a job that waits, and not one that runs', async () => {
      const { queue, worker, begun, add, end, untilBegun } = await openWithWorker();
      for (const id of ['a', 'b', 'c']) await add(id);
      worker.start();
      await untilBegun(['a']);
      expect([await queue.remove('b'), await queue.remove('a')]).toEqual([true, false]);
      expect(await queue.positions(['b', 'c'])).toEqual([null, 0]);
      end('a');
      await untilBegun(['a', 'c']);
      expect(begun).not.toContain('b');
    });

    test('a cancel reaches the run, and an ended job has none', async () => {
      const { queue, worker, runs, add, untilBegun } = await openWithWorker();
      await add('a');
      worker.start();
      await untilBegun(['a']);
      const stop = runs[0]?.stop;
      expect(await queue.cancel('a')).toBe(true);
      await expect.poll(() => stop?.reason).toBe('canceled');
    });

    test('a returned job is next again', async () => {
      const { worker, add, end, untilBegun } = await openWithWorker();
      for (const id of ['a1', 'a2']) await add(id, 'anna');
      await add('b1', 'ben');
      worker.start();
      await untilBegun(['a1']);
      end('a1', 'interrupted');
      await untilBegun(['a1', 'a1']);
      end('a1');
      await untilBegun(['a1', 'a1', 'b1']);
    });

    test('a worker that closes stops its runs, and their jobs wait again', async () => {
      const { queue, worker, runs, add, untilBegun } = await openWithWorker();
      for (const id of ['a', 'b']) await add(id);
      worker.start();
      await untilBegun(['a']);
      const stop = runs[0]?.stop;
      await worker.close();
      expect(stop?.reason).toBe('shutdown');
      expect(await queue.positions(['a', 'b'])).toEqual([0, 1]);
    });

    test('says which order is the last', async () => {
      const { queue, add } = await openWithWorker();
      expect(await queue.nextOrder()).toBe(0);
      await add('a', 'anna', 6.5);
      expect(await queue.nextOrder()).toBe(7);
      await queue.remove('a');
      expect(await queue.nextOrder()).toBe(7);
    });
  });
}
