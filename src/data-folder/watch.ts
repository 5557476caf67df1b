import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

type Identity = { readonly dev: number; readonly ino: number };
type WatchedFile = Identity & { readonly path: string };

const CHECK_INTERVAL_MS = 1000;
/** The errors that mean that a file is gone. Others are ignored: a network disk may not answer for a moment. */
const ABSENT_CODES: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE']);

type WatchOptions = { readonly openFiles?: readonly string[]; readonly hasId?: boolean };

/**
 * Watches the directory, its `folder.id`, and the files in it that this process has open. Keeps the directory open,
 * so that the system cannot give its inode number to another one. Set `hasId` to false when the files are in a
 * bucket: then there is no `folder.id`.
 */
export class DataDirWatch {
  /** Resolves when the directory is gone or was replaced. Never rejects. */
  readonly lost: Promise<Error>;
  readonly #root: string;
  readonly #handle: number;
  readonly #watchedFiles: readonly WatchedFile[];
  readonly #idFile: string;
  readonly #openedId: string | undefined;
  readonly #timer: NodeJS.Timeout;
  #resolveLost: (error: Error) => void = () => {};

  constructor(root: string, { openFiles = [], hasId = true }: WatchOptions = {}) {
    this.#root = root;
    this.#handle = openSync(root, 'r');
    this.#watchedFiles = [root, ...openFiles].map((path) => ({ path, ...identityOf(path) }));
    this.#idFile = join(root, 'folder.id');
    this.#openedId = hasId ? readFileSync(this.#idFile, 'utf8') : undefined;
    this.lost = new Promise((resolve) => (this.#resolveLost = resolve));
    this.#timer = setInterval(() => this.#checkAll(), CHECK_INTERVAL_MS).unref();
  }

  /**
   * Throws when the directory is gone or was replaced. Call it before a change is acknowledged; it takes
   * microseconds.
   */
  check(): void {
    const replaced = this.#watchedFiles.find((file) => !isSame(file));
    if (replaced) throw this.#reportLossOf(replaced.path);
  }

  close(): void {
    clearInterval(this.#timer);
    closeSync(this.#handle);
  }

  #checkAll(): void {
    try {
      this.check();
      if (this.#openedId === undefined) return;
      if (readFileSync(this.#idFile, 'utf8') !== this.#openedId) this.#reportLossOf(this.#idFile);
    } catch (error) {
      if (isAbsent(error)) this.#reportLossOf(this.#idFile);
    }
  }

  #reportLossOf(path: string): Error {
    const error = new Error(
      `--data-dir ${this.#root} is gone or was replaced while in use (${path} is not the one that was ` +
        'opened): nothing can be kept any more, so this process stops; start it again once the ' +
        'directory is back',
    );
    this.#resolveLost(error);
    return error;
  }
}

/**
 * Reads the identity of a file without opening it: to close a handle of the database would release the locks of
 * SQLite.
 */
function identityOf(path: string): Identity {
  const { dev, ino } = statSync(path);
  return { dev, ino };
}

function isSame({ path, dev, ino }: WatchedFile): boolean {
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
