import { SingleBar } from 'cli-progress';
import { forEachConcurrently } from '../lib/concurrency.ts';
import { megabytes } from './printable-name.ts';

/** The number of files to read and their size. */
type ProgressTotal = ReturnType<typeof totalOf>;

/** Returns the number of files and their size. */
export function totalOf(files: readonly { readonly sizeBytes: number }[]) {
  return { files: files.length, bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}

/** Called when the size of a part of the work is known. The caller calls the returned function after each item. */
type StartProgress = (total: ProgressTotal) => (bytes: number) => void;

const MAX_CONCURRENT = 8;

/** Acts on files, some at a time, and shows the progress. The first failure stops the rest. */
export async function forEachFile<File extends { readonly sizeBytes: number }>(
  files: readonly File[],
  act: (file: File) => Promise<void>,
): Promise<void> {
  const progress = createProgress();
  const onFile = progress.start(totalOf(files));
  await forEachConcurrently(MAX_CONCURRENT, files, async (file) => {
    await act(file);
    onFile(file.sizeBytes);
  }).finally(progress.stop);
}

type Shown = { show(text: string, value: number): void; stop(): void };

/** Shows the progress of a command: as a bar on a terminal, otherwise as a line every two seconds. */
export function createProgress(out: NodeJS.WriteStream = process.stderr) {
  let shown: Shown | undefined;
  const stop = (): void => shown?.stop();
  const start: StartProgress = (total) => {
    stop();
    let [items, bytes] = [0, 0];
    shown = out.isTTY ? bar(out, total) : lines(out);
    return (more) => {
      items++;
      bytes += more;
      shown?.show(textOf(total, items, bytes), items + bytes);
    };
  };
  return { start, stop };
}

function bar(stream: NodeJS.WriteStream, total: ProgressTotal): Shown {
  const shown = new SingleBar({
    stream,
    format: '{bar} {percentage}%  {done}  {eta_formatted} left',
    barsize: 20,
    // Do not turn line wrapping off: Ctrl-C would leave the terminal without it.
    linewrap: true,
    etaBuffer: 200,
  });
  // Each file counts for one, so that empty files also move the bar.
  shown.start(total.bytes + total.files, 0, { done: textOf(total, 0, 0) });
  return { show: (done, value) => shown.update(value, { done }), stop: () => shown.stop() };
}

const LINE_EVERY_MS = 2000;

function lines(out: NodeJS.WriteStream): Shown {
  let printedAtMs = Date.now();
  return {
    show(text) {
      if (Date.now() - printedAtMs < LINE_EVERY_MS) return;
      printedAtMs = Date.now();
      out.write(`${text}\n`);
    },
    stop() {},
  };
}

function textOf(total: ProgressTotal, items: number, bytes: number): string {
  return `${items} of ${total.files} files, ${megabytes(bytes)}`;
}
