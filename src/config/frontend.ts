import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InvalidSetting } from './invalid-setting.ts';

/** The folder of a front end; refused at the start when it has no `index.html`. */
export function readFrontendRoot(folder: string | undefined): string | undefined {
  if (folder === undefined) return undefined;
  const root = resolve(folder);
  if (folder !== '' && existsSync(join(root, 'index.html'))) return root;
  throw new InvalidSetting(
    `option '--front-end-root' needs a folder with an index.html, not '${folder}'`,
  );
}
