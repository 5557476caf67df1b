import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where things are below `--data-dir`. */
export type DataDir = {
  readonly root: string;
  readonly database: string;
  readonly spool: string;
  /** Signs download addresses and tells users apart; made once, readable by the owner only. */
  readonly secret: Buffer;
};

const SECRET_BYTES = 32;

export function openDataDir(root: string): DataDir {
  const spool = join(root, 'spool');
  mkdirSync(spool, { recursive: true, mode: 0o700 });
  return { root, database: join(root, 'holdover.db'), spool, secret: secretIn(root) };
}

function secretIn(root: string): Buffer {
  const path = join(root, 'secret.key');
  try {
    writeFileSync(path, randomBytes(SECRET_BYTES), { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const secret = readFileSync(path);
  if (secret.length !== SECRET_BYTES) {
    throw new Error(`${path} is damaged: remove it, and all users of keys become new users`);
  }
  return secret;
}
