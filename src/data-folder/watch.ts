import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

type Identity = { readonly dev: number; readonly ino: number };

const CHECK_INTERVAL_MS = 1000;
/** The errors that mean that a file is gone. Others are ignored: a network disk may not answer for a moment. */
const ABSENT_CODES: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE']);

type WatchOptions = { readonly openFiles?: readonly string[]; readonly hasId?: boolean };

/**
 * Watches the directory, its `folder.id`, and the files in it that this process has open. Keeps the directory open,
 * so that the system cannot give its inode number to another one. Set `hasId` to false when the files are in a
 * bucket: then there is no `folder.id`.
 */
export function watchDataDir(root: string, { openFiles = [], hasId = true }: WatchOptions = {}) {
  const handle = openSync(root, 'r');
  const watchedFiles = [root, ...openFiles].map((path) => ({ path, ...identityOf(path) }));
  const idFile = join(root, 'folder.id');
  const openedId = hasId ? readFileSync(idFile, 'utf8') : undefined;
  let reportLoss: (error: Error) => void = () => {};
  const lost = new Promise<Error>((resolve) => (reportLoss = resolve));

  function reportLossOf(path: string): Error {
    const error = new Error(
      `--data-dir ${root} is gone or was replaced while in use (${path} is not the one that was ` +
        'opened): nothing can be kept any more, so this process stops; start it again once the ' +
        'directory is back',
    );
    reportLoss(error);
    return error;
  }

  function check(): void {
    const replaced = watchedFiles.find((file) => !isSame(file));
    if (replaced) throw reportLossOf(replaced.path);
  }

  function checkAll(): void {
    try {
      check();
      if (hasId && readFileSync(idFile, 'utf8') !== openedId) reportLossOf(idFile);
    } catch (error) {
      if (isAbsent(error)) reportLossOf(idFile);
    }
  }

  const timer = setInterval(checkAll, CHECK_INTERVAL_MS).unref();
  return {
    /** Resolves when the directory is gone or was replaced. Never rejects. */
    lost,
    /**
     * Throws when the directory is gone or was replaced. Call it before a change is acknowledged; it takes
     * microseconds.
     */
    check,
    close(this: void): void {
      clearInterval(timer);
      closeSync(handle);
    },
  };
}

/**
 * Reads the identity of a file without opening it: to close a handle of the database would release the locks of
 * SQLite.
 */
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
