import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Refused } from './refused.ts';

/** The folder of a front end, looked at before anybody waits for a page that is not there. */
export function frontEndRoot(folder: string | undefined): string | undefined {
  if (folder === undefined) return undefined;
  const root = resolve(folder);
  const page = statSync(join(root, 'index.html'), { throwIfNoEntry: false });
  if (folder !== '' && page?.isFile()) return root;
  throw new Refused(`option '--front-end-root' needs a folder with an index.html, not '${folder}'`);
}
