import { randomUUID } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';

/** Writes a small file whole or not at all: a kill half-way leaves no file that cannot be used. */
export function writeFileAtomically(path: string, content: string | Buffer): void {
  const temporaryPath = `${path}.${randomUUID()}`;
  writeFileSync(temporaryPath, content, { mode: 0o600, flush: true });
  renameSync(temporaryPath, path);
}
