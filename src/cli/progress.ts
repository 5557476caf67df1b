import { forEachConcurrently } from '../lib/concurrency.ts';
import { megabytes } from './printable-name.ts';

type Sized = { readonly sizeBytes: number };

const MAX_CONCURRENT = 8;
const LINE_EVERY_MS = 2000;

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

/** Returns a function to call after each file. It prints a line every two seconds. */
export function createProgress(count: number): (file: Sized) => void {
  let [files, bytes, printedAtMs] = [0, 0, Date.now()];
  return ({ sizeBytes }) => {
    files++;
    bytes += sizeBytes;
    if (Date.now() - printedAtMs < LINE_EVERY_MS) return;
    printedAtMs = Date.now();
    process.stderr.write(`${files} of ${count} files, ${megabytes(bytes)}\n`);
  };
}

/** Returns the size of all files together. */
export function sizeOf(files: readonly Sized[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
