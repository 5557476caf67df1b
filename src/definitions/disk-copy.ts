import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../observability/log.ts';
import type { SourceText, TextOrigin } from './fetch-text.ts';

/** The last good text of a source on disk, for the time after a restart. */
export type DiskCopy = {
  /** Returns the copy; `undefined` when it is missing or damaged. */
  read(): Promise<(SourceText & { readonly confirmedAtMs: number }) | undefined>;
  /** Replaces the copy, and removes that of any other source. */
  write(text: SourceText): Promise<void>;
  /** Records that the source confirmed the text. */
  confirm(atMs: number): Promise<void>;
};

type DiskCopyOptions = {
  /** The folder, which holds nothing else. */
  readonly root: string;
  /** The name of the file, which identifies the source. */
  readonly name: string;
  readonly log: Logger;
};

/** The copy is one file: a line with the origin of the text, then the text. */
export function createDiskCopy({ root, name, log }: DiskCopyOptions): DiskCopy {
  const path = join(root, name);
  const replace = async ({ bytes, from, etag }: SourceText): Promise<void> => {
    await mkdir(root, { recursive: true, mode: 0o700 });
    // Whole or not at all.
    const newPath = `${path}.new`;
    const content = [`${JSON.stringify({ from, etag })}\n`, bytes];
    await writeFile(newPath, content, { mode: 0o600, flush: true });
    await rename(newPath, path);
  };
  const removeOthers = async (): Promise<void> => {
    const others = (await readdir(root)).filter((each) => each !== name);
    await Promise.all(others.map((other) => rm(join(root, other), { force: true })));
  };
  return {
    async read() {
      try {
        const { mtimeMs } = await stat(path);
        const whole = await readFile(path);
        const end = whole.indexOf('\n');
        const origin = JSON.parse(whole.toString('utf8', 0, end)) as TextOrigin;
        return { ...origin, bytes: whole.subarray(end + 1), confirmedAtMs: mtimeMs };
      } catch {
        return undefined;
      }
    },
    async write(text) {
      try {
        await replace(text);
      } catch (err) {
        const event = 'definitions.cache_failed';
        log.warn({ event, err }, 'could not store node definitions on disk');
      }
      // A part of a text that does not fit on the disk is among them.
      await removeOthers().catch(() => {});
    },
    confirm: (atMs) => utimes(path, new Date(atMs), new Date(atMs)).catch(() => {}),
  };
}
