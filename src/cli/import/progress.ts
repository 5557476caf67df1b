import { SingleBar } from 'cli-progress';
import { megabytes } from '../printable-name.ts';

/** Tells people how far it is. */
export type Progress = {
  add(bytes: number): void;
  stop(): void;
};

const LINE_EVERY_MS = 2000;

/** The work: files that are read, or records of a ledger. */
export type ProgressTotal =
  | { readonly files: number; readonly bytes: number }
  | { readonly records: number };

/** A bar on a terminal; elsewhere a line now and then. */
export function createProgress(out: NodeJS.WriteStream, total: ProgressTotal): Progress {
  return out.isTTY ? bar(out, total) : lines(out, total);
}

function bar(stream: NodeJS.WriteStream, total: ProgressTotal): Progress {
  const shown = new SingleBar({
    stream,
    format: '{bar} {percentage}%  {done}  {eta_formatted} left',
    barsize: 20,
    // The terminal stays as it is: Ctrl-C would not put it back.
    linewrap: true,
    etaBuffer: 200,
  });
  let items = 0;
  let bytes = 0;
  // A folder of empty files has a length, too.
  const length = 'records' in total ? total.records : total.bytes + total.files;
  shown.start(length, 0, { done: textOf(total, items, bytes) });
  return {
    add(more) {
      items++;
      bytes += more;
      shown.update(bytes + items, { done: textOf(total, items, bytes) });
    },
    stop: () => shown.stop(),
  };
}

function lines(out: NodeJS.WriteStream, total: ProgressTotal): Progress {
  let items = 0;
  let bytes = 0;
  let printedAtMs = Date.now();
  return {
    add(more) {
      items++;
      bytes += more;
      if (Date.now() - printedAtMs < LINE_EVERY_MS) return;
      printedAtMs = Date.now();
      out.write(`${textOf(total, items, bytes)}\n`);
    },
    stop() {},
  };
}

function textOf(total: ProgressTotal, items: number, bytes: number): string {
  if ('records' in total) return `${items} of ${total.records} records`;
  return `${items} of ${total.files} files, ${megabytes(bytes)}`;
}
