import { forEachConcurrently } from '../lib/concurrency.ts';
import { megabytes } from './printable-name.ts';

type Sized = { readonly sizeBytes: number };

const MAX_CONCURRENT = 8;
const LINE_EVERY_MS = 2000;
const BAR_EVERY_MS = 100;
const BAR_CHARS = 30;

/** Acts on files, some at a time, and shows the progress. The first failure stops the rest. */
export async function forEachFile<File extends Sized>(
  files: readonly File[],
  act: (file: File) => Promise<void>,
): Promise<void> {
  const onFile = createProgress(files.length);
  await forEachConcurrently(MAX_CONCURRENT, files, async (file) => {
    await act(file);
    onFile(file);
  });
}

/** Returns a function to call after each file. A terminal shows a bar; elsewhere there is a line every two seconds. */
export function createProgress(
  count: number,
  out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
): (file: Sized) => void {
  let [files, bytes, printedAtMs] = [0, 0, Date.now()];
  return ({ sizeBytes }) => {
    files++;
    bytes += sizeBytes;
    const isEnd = out.isTTY && files === count;
    if (!isEnd && Date.now() - printedAtMs < (out.isTTY ? BAR_EVERY_MS : LINE_EVERY_MS)) return;
    printedAtMs = Date.now();
    const text = `${files} of ${count} files, ${megabytes(bytes)}`;
    const done = '#'.repeat((files / count) * BAR_CHARS);
    const bar = `\r[${done.padEnd(BAR_CHARS, '.')}] ${text}${isEnd ? '\n' : ''}`;
    out.write(out.isTTY ? bar : `${text}\n`);
  };
}

/** Returns the size of all files together. */
export function sizeOf(files: readonly Sized[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
