import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from './python-packages.ts';

const REQUIREMENTS = fileURLToPath(new URL('../browser/requirements.txt', import.meta.url));

/** What `--front-end-root` is given, or why there is nothing to give. */
export async function installFrontEnd(): Promise<
  { readonly ok: true; readonly root: string } | { readonly ok: false; readonly why: string }
> {
  const installed = await installPackages('front-end', REQUIREMENTS);
  if (!installed.ok) return installed;
  return { ok: true, root: join(installed.packages, 'comfyui_frontend_package', 'static') };
}
