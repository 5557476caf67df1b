import { lstat, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder that goes when the run is over (`processes/run-folder.ts`). */
export function runFolder(name: string): Promise<string> {
  return mkdtemp(join(tmpdir(), `holdover-${name}-`));
}

/** A folder that goes when the test is over. */
export async function tempFolder(name: string): Promise<string> {
  const folder = await runFolder(name);
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes files below a folder: path → what is in it. */
export async function fill(
  root: string,
  files: { readonly [path: string]: string | Uint8Array },
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

/** Everything below a folder: kind, size, times, links and content of each entry. */
export async function snapshot(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const lines = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    const { mode, size, nlink, mtimeMs, ctimeMs } = await lstat(path);
    const small = entry.isFile() && size < 100_000;
    const content = small ? (await readFile(path)).toString('base64') : '';
    return [path, mode, size, nlink, mtimeMs, ctimeMs, content].join(' ');
  });
  return (await Promise.all(lines)).toSorted();
}
