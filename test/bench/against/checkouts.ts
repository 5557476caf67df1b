import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A built checkout of this repository, and its commit. */
export type Checkout = { readonly dir: string; readonly commit: string };

/** Throws where nothing is built. */
export function referenceAt(path: string): Checkout {
  const dir = resolve(path);
  if (!existsSync(join(dir, 'dist/main.js'))) throw new Error(`${dir} has no dist/main.js`);
  const git = ['-C', dir, 'describe', '--always', '--dirty'];
  return { dir, commit: execFileSync('git', git, { encoding: 'utf8' }).trim() };
}
