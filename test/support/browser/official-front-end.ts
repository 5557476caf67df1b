import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../clients/python-packages.ts';

/** The versions that PyPI has, each with its own list: both are one package to Python. */
const REQUIREMENTS = {
  '1.58.1': 'requirements.txt',
  '1.49.6': 'requirements-1.49.6.txt',
} as const;

/** The folder for `--front-end-root`, or the reason why there is none. */
export type FrontEndFolder =
  | { readonly ok: true; readonly root: string }
  | { readonly ok: false; readonly why: string };

export async function installFrontEnd(
  version: keyof typeof REQUIREMENTS = '1.58.1',
): Promise<FrontEndFolder> {
  const list = fileURLToPath(new URL(`../../browser/${REQUIREMENTS[version]}`, import.meta.url));
  const installed = await installPackages('front-end', list);
  if (!installed.ok) return installed;
  return { ok: true, root: join(installed.packages, 'comfyui_frontend_package', 'static') };
}

/**
 * A front end from before there were packages: the `web` folder of a release of its time, as a folder
 * of that name in the one that `HOLDOVER_TEST_FRONT_ENDS` names.
 */
export function olderFrontEnd(name: string): FrontEndFolder {
  const folder = process.env['HOLDOVER_TEST_FRONT_ENDS'];
  if (folder === undefined) return { ok: false, why: 'HOLDOVER_TEST_FRONT_ENDS names no folder' };
  const root = join(folder, name);
  if (existsSync(join(root, 'index.html'))) return { ok: true, root };
  return { ok: false, why: `there is no index.html in ${root}` };
}
