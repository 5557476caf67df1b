import { expect, onTestFinished, test, vi } from 'vitest';
import { createProgress } from '../../src/cli/progress.ts';

test.each([
  [{ files: 3, bytes: 2 ** 21 }, '1 of 3 files, 1.0 MB\n'],
  [{ records: 3 }, '1 of 3 records\n'],
])('without a terminal %j are counted in lines', (total, line) => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const out = { isTTY: false, write: (text: string) => written.push(text) };
  const add = createProgress(out as unknown as NodeJS.WriteStream).start(total);
  vi.setSystemTime(Date.now() + 3000);
  add(2 ** 20);
  expect(written).toEqual([line]);
});

test('the cursor and the lines of a terminal stay as they are, since Ctrl-C puts nothing back', () => {
  const written: string[] = [];
  const out = { isTTY: true, columns: 80, write: (text: string) => written.push(text) };
  const total = { files: 123_456, bytes: 2 ** 37 };
  const progress = createProgress(out as unknown as NodeJS.WriteStream);
  progress.start(total)(2 ** 36);
  progress.stop();
  expect(written.join('')).toContain('1 of 123456 files, 65536.0 MB');
  expect(written.join('')).not.toContain('?25l');
  expect(written.join('')).not.toContain('?7l');
  expect(Math.max(...written.map((text) => text.length))).toBeLessThan(80);
});
