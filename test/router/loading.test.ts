import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createModelThreads } from '../../src/router/local/threads.ts';

const NO_DESCRIPTORS = (): never => {
  throw new Error('EMFILE: too many open files');
};

function openThreads() {
  const limits = { threads: 1, maxWaiting: 1 };
  const threads = createModelThreads({ limits, log: pino({ level: 'silent' }) });
  const task = { model: 'digest', input: {}, files: {} };
  return { threads, run: () => threads.run(task, AbortSignal.timeout(20_000)) };
}

test('threads that could not be opened are opened by the next task, or closed', async () => {
  vi.doMock('tinypool', NO_DESCRIPTORS);
  onTestFinished(() => vi.doUnmock('tinypool'));
  const { threads, run } = openThreads();
  await expect(run()).rejects.toThrow();
  const { threads: unopened, run: runUnopened } = openThreads();
  await expect(runUnopened()).rejects.toThrow();
  const destroy = vi.fn();
  class Tinypool {
    readonly on = vi.fn();
    readonly run = vi.fn(async () => 'end of the task');
    readonly destroy = destroy;
  }
  vi.doMock('tinypool', () => ({ Tinypool }));
  expect(await run()).toBe('end of the task');
  await threads.close();
  expect(destroy).toHaveBeenCalledOnce();
  await unopened.close();
});
