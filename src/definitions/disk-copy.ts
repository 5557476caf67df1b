import { mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../observability/log.ts';
import type { SourceText, TextOrigin } from './fetch-text.ts';

/** The last good text of a source on disk, for the time after a restart. */
export type DiskCopy = {
  /** Returns the copy; `undefined` when it is missing or damaged. */
  read(): Promise<(SourceText & { readonly confirmedAtMs: number }) | undefined>;
  /** Replaces the copy, also that of another source. */
  write(text: SourceText): Promise<void>;
  /** Records that the source confirmed the text. */
  confirm(atMs: number): Promise<void>;
};

type DiskCopyOptions = {
  /** The folder, which holds nothing else. */
  readonly root: string;
  /** Identifies the source. A copy of another one is not read. */
  readonly source: string;
  readonly log: Logger;
};

/** The copy is one file: a line with the origin of the text, then the text. */
export function createDiskCopy({ root, source, log }: DiskCopyOptions): DiskCopy {
  const path = join(root, 'definitions.json');
  // A file is replaced as a whole or not at all.
  const newPath = `${path}.new`;
  return {
    async read() {
      try {
        const { mtimeMs } = await stat(path);
        const whole = await readFile(path);
        const end = whole.indexOf('\n');
        const header: unknown = JSON.parse(whole.toString('utf8', 0, end));
        const { source: copied, ...origin } = header as TextOrigin & { source: string };
        if (copied !== source) return undefined;
        return { ...origin, bytes: whole.subarray(end + 1), confirmedAtMs: mtimeMs };
      } catch {
        return undefined;
      }
    },
    async write({ bytes, from, etag }) {
      try {
        await mkdir(root, { recursive: true, mode: 0o700 });
        const content = [`${JSON.stringify({ source, from, etag })}\n`, bytes];
        await writeFile(newPath, content, { mode: 0o600, flush: true });
        await rename(newPath, path);
      } catch (err) {
        // A part of a text that does not fit on the disk.
        await rm(newPath, { force: true }).catch(() => {});
        const event = 'definitions.cache_failed';
        log.warn({ event, err }, 'could not store node definitions on disk');
      }
    },
    confirm: (atMs) => utimes(path, new Date(atMs), new Date(atMs)).catch(() => {}),
  };
}
