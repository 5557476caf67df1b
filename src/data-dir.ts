import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where things are below `--data-dir`. */
export type DataDir = {
  readonly root: string;
  readonly database: string;
  readonly spool: string;
  readonly userData: string;
  /** Copies of node definitions, for the time after a restart. */
  readonly objectInfo: string;
  /** Signs download addresses and tells users apart; made once, readable by the owner only. */
  readonly secret: Buffer;
};

const SECRET_BYTES = 32;

export function openDataDir(root: string): DataDir {
  const spool = join(root, 'spool');
  try {
    mkdirSync(spool, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`--data-dir ${root} cannot be used: ${reason}`, { cause: error });
  }
  const userData = join(root, 'userdata');
  return {
    root,
    database: join(root, 'holdover.db'),
    spool,
    userData,
    objectInfo: join(root, 'object-info'),
    secret: secretIn(root),
  };
}

function secretIn(root: string): Buffer {
  const path = join(root, 'secret.key');
  if (!existsSync(path)) {
    // Whole or not at all: a process killed half-way leaves no key that nobody can use.
    const fresh = `${path}.new`;
    writeFileSync(fresh, randomBytes(SECRET_BYTES), { mode: 0o600, flush: true });
    renameSync(fresh, path);
  }
  const secret = readFileSync(path);
  if (secret.length !== SECRET_BYTES) {
    throw new Error(`${path} is damaged: remove it, and all users of keys become new users`);
  }
  return secret;
}
