import { SingleBar } from 'cli-progress';
import { megabytes } from '../printable-name.ts';

/** Tells people how far it is. */
export type Progress = {
  add(bytes: number): void;
  stop(): void;
};

const LINE_EVERY_MS = 2000;

/** A bar on a terminal; elsewhere a line now and then. */
export function createProgress(
  out: NodeJS.WriteStream,
  total: { readonly files: number; readonly bytes: number },
): Progress {
  return out.isTTY ? bar(out, total) : lines(out, total);
}

type ProgressTotal = Parameters<typeof createProgress>[1];

function bar(stream: NodeJS.WriteStream, total: ProgressTotal): Progress {
  const shown = new SingleBar({
    stream,
    format: '{bar} {percentage}%  {files}/{allFiles} files  {mb}  {eta_formatted} left',
    hideCursor: true,
    etaBuffer: 200,
  });
  let files = 0;
  let bytes = 0;
  // A folder of empty files has a length, too.
  shown.start(total.bytes + total.files, 0, barFields());
  function barFields() {
    return { files, allFiles: total.files, mb: megabytes(bytes) };
  }
  return {
    add(more) {
      files++;
      bytes += more;
      shown.update(bytes + files, barFields());
    },
    stop: () => shown.stop(),
  };
}

function lines(out: NodeJS.WriteStream, total: ProgressTotal): Progress {
  let files = 0;
  let bytes = 0;
  let printedAtMs = Date.now();
  return {
    add(more) {
      files++;
      bytes += more;
      if (Date.now() - printedAtMs < LINE_EVERY_MS) return;
      printedAtMs = Date.now();
      out.write(`${files} of ${total.files} files, ${megabytes(bytes)}\n`);
    },
    stop() {},
  };
}
