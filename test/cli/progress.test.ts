import { expect, test } from 'vitest';
import { createProgress } from '../../src/cli/progress.ts';

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
