import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

type Identity = { readonly dev: number; readonly ino: number };

const CHECK_INTERVAL_MS = 1000;
/** Other errors pass: a network disk that does not answer for a moment is still the same. */
const ABSENT_CODES: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE']);

/** The data directory is not the one this process opened. */
class DataDirLost extends Error {}

type WatchOptions = { readonly openFiles?: readonly string[]; readonly hasId?: boolean };

/**
 * Watches the directory, its `folder.id`, and files of it that this process has open. The directory
 * is held open as well, so that the system cannot give its number to another one. A directory whose files
 * are in a bucket has no `folder.id`.
 */
export function watchDataDir(root: string, { openFiles = [], hasId = true }: WatchOptions = {}) {
  const handle = openSync(root, 'r');
  const watchedFiles = [root, ...openFiles].map((path) => ({ path, ...identityOf(path) }));
  const idFile = join(root, 'folder.id');
  const openedId = hasId ? readFileSync(idFile, 'utf8') : undefined;
  let reportLoss: (error: Error) => void = () => {};
  const lost = new Promise<Error>((resolve) => (reportLoss = resolve));

  function check(): void {
    for (const file of watchedFiles) if (!isSame(file)) throw dataDirLost(file.path);
  }

  function checkAll(): void {
    try {
      check();
      if (hasId && readFileSync(idFile, 'utf8') !== openedId) throw dataDirLost(idFile);
    } catch (error) {
      if (error instanceof DataDirLost) reportLoss(error);
      else if (isAbsent(error)) reportLoss(dataDirLost(idFile));
    }
  }

  function dataDirLost(path: string): DataDirLost {
    return new DataDirLost(
      `--data-dir ${root} is gone or was replaced while in use (${path} is not the one that was ` +
        'opened): nothing can be kept any more, so this process stops; start it again once the ' +
        'directory is back',
    );
  }

  const timer = setInterval(checkAll, CHECK_INTERVAL_MS).unref();
  return {
    /** Resolves when the directory is gone, or another one is in its place; never rejects. */
    lost,
    /** Throws when it is; nothing may be promised to a client then. Costs microseconds. */
    check(this: void): void {
      try {
        check();
      } catch (error) {
        reportLoss(error as Error);
        throw error;
      }
    },
    close(this: void): void {
      clearInterval(timer);
      closeSync(handle);
    },
  };
}

/** Uses no file handle: closing one of the database would drop the locks of SQLite. */
function identityOf(path: string): Identity {
  const { dev, ino } = statSync(path);
  return { dev, ino };
}

function isSame({ path, dev, ino }: Identity & { readonly path: string }): boolean {
  try {
    const found = statSync(path);
    return found.dev === dev && found.ino === ino;
  } catch (error) {
    return !isAbsent(error);
  }
}

function isAbsent(error: unknown): boolean {
  return ABSENT_CODES.has((error as NodeJS.ErrnoException).code);
}
