import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Looks after the data directory of a running process. */
export type FolderWatch = {
  /** Resolves when the directory is gone, or another one is in its place; never rejects. */
  readonly lost: Promise<Error>;
  /** Throws when it is; nothing may be promised to a client then. Costs microseconds. */
  check(this: void): void;
  close(this: void): void;
};

type Identity = { readonly dev: number; readonly ino: number };

const EVERY_MS = 1000;
/** Other errors pass: a network disk that does not answer for a moment is still the same. */
const GONE: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE']);

/** The data directory is not the one this process opened. */
class FolderLost extends Error {}

/**
 * Watches the directory, its `folder.id`, and files of it that this process keeps open. The directory
 * is held open as well, so that the system cannot give its number to another one.
 */
export function watchFolder(root: string, openFiles: readonly string[] = []): FolderWatch {
  const handle = openSync(root, 'r');
  const watched = [root, ...openFiles].map((path) => ({ path, ...identityOf(path) }));
  const idFile = join(root, 'folder.id');
  const id = readFileSync(idFile, 'utf8');
  let report: (error: Error) => void = () => {};
  const lost = new Promise<Error>((resolve) => (report = resolve));

  function check(): void {
    for (const file of watched) if (!isSame(file)) throw lostFolder(file.path);
  }

  function checkAll(): void {
    try {
      check();
      if (readFileSync(idFile, 'utf8') !== id) throw lostFolder(idFile);
    } catch (error) {
      if (error instanceof FolderLost) report(error);
      else if (isGone(error)) report(lostFolder(idFile));
    }
  }

  function lostFolder(path: string): FolderLost {
    return new FolderLost(
      `--data-dir ${root} is gone or was replaced while in use (${path} is not the one that was ` +
        'opened): nothing can be kept any more, so this process stops; start it again once the ' +
        'directory is back',
    );
  }

  const timer = setInterval(checkAll, EVERY_MS).unref();
  return {
    lost,
    check() {
      try {
        check();
      } catch (error) {
        report(error as Error);
        throw error;
      }
    },
    close() {
      clearInterval(timer);
      closeSync(handle);
    },
  };
}

/** Not by a handle: closing one of the database drops the locks that SQLite holds on it. */
function identityOf(path: string): Identity {
  const { dev, ino } = statSync(path);
  return { dev, ino };
}

function isSame({ path, dev, ino }: Identity & { readonly path: string }): boolean {
  try {
    const found = statSync(path);
    return found.dev === dev && found.ino === ino;
  } catch (error) {
    return !isGone(error);
  }
}

function isGone(error: unknown): boolean {
  return GONE.has((error as NodeJS.ErrnoException).code);
}
