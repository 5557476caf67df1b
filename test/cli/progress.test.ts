import { expect, onTestFinished, test, vi } from 'vitest';
import { createProgress } from '../../src/cli/import/progress.ts';

test.each([
  [{ files: 3, bytes: 2 ** 21 }, '1 of 3 files, 1.0 MB\n'],
  [{ records: 3 }, '1 of 3 records\n'],
])('without a terminal %j are counted in lines', (total, line) => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const out = { isTTY: false, write: (text: string) => written.push(text) };
  const progress = createProgress(out as unknown as NodeJS.WriteStream, total);
  vi.setSystemTime(Date.now() + 3000);
  progress.add(2 ** 20);
  expect(written).toEqual([line]);
});
