// Tasks that go on beside the calls end with their owner.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { BackgroundTasks } from '../../src/lib/background-tasks.ts';

test('an error of a task is reported, and the task ends without one', async () => {
  const tasks = new BackgroundTasks();
  const errors: unknown[] = [];
  await tasks.run(
    () => {
      throw new Error('broken');
    },
    (error) => void errors.push(error),
  );
  expect(errors).toEqual([new Error('broken')]);
});

test('closing stops the tasks and waits for them; their errors are of no interest', async () => {
  const tasks = new BackgroundTasks();
  const errors: unknown[] = [];
  let hasEnded = false;
  const task = async () => {
    await delay(60_000, undefined, { signal: tasks.signal }).finally(() => (hasEnded = true));
  };
  void tasks.run(task, (error) => void errors.push(error));
  await tasks.close();
  expect([hasEnded, errors]).toEqual([true, []]);
});
