import { Command } from 'commander';
import { expect, test, vi } from 'vitest';
import { createProgress } from '../../src/cli/progress.ts';
import { runCommand } from '../../src/cli/shared-options.ts';

/** What is written of ten files, of which each takes 300 ms. */
function written(isTTY: boolean): string[] {
  vi.useFakeTimers({ toFake: ['Date'] });
  const write = vi.fn(() => true);
  const onFile = createProgress(10, { isTTY, write });
  for (let file = 0; file < 10; file++) {
    vi.advanceTimersByTime(300);
    onFile({ sizeBytes: 2 ** 20 });
  }
  vi.useRealTimers();
  return write.mock.calls.flat() as unknown as string[];
}

test('a terminal shows a bar, which ends with a line', () => {
  const bars = written(true);
  expect(bars).toHaveLength(10);
  expect(bars[2]).toBe('\r[#########.....................] 3 of 10 files, 3.0 MB');
  expect(bars[9]).toBe(`\r[${'#'.repeat(30)}] 10 of 10 files, 10.0 MB\n`);
});

test('elsewhere there is a line every two seconds', () => {
  expect(written(false)).toEqual(['7 of 10 files, 7.0 MB\n']);
});

test('an error takes the place of a bar that has not ended', async () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const { isTTY } = process.stderr;
  process.stderr.isTTY = true;
  await runCommand(new Command(), [], () => Promise.reject(new Error('the disk is full')));
  process.stderr.isTTY = isTTY;
  expect(write).toHaveBeenCalledWith('\r\u001b[Kerror: the disk is full\n');
  vi.restoreAllMocks();
});
