import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Not in the repository. */
const TOOLS = fileURLToPath(new URL('../../../.ci-tools/', import.meta.url));
const run = promisify(execFile);

/** The folder PyPI packages were installed into, or why they were not. */
export type Installed =
  | { readonly ok: true; readonly packages: string }
  | { readonly ok: false; readonly why: string };

/** Installs a list of versions under a name, once for each Python and each list. */
export async function installPackages(name: string, requirements: string): Promise<Installed> {
  try {
    const python = await pythonTag();
    const versions = createHash('sha256')
      .update(await readFile(requirements))
      .digest('hex');
    const packages = join(TOOLS, `${name}-${python}-${versions.slice(0, 8)}`);
    if (!existsSync(packages)) await install(packages, requirements);
    return { ok: true, packages };
  } catch (error) {
    return { ok: false, why: reasonOf(error) };
  }
}

async function pythonTag(): Promise<string> {
  const code =
    'import sys; assert sys.version_info >= (3, 10); print(sys.implementation.cache_tag)';
  return (await run('python3', ['-c', code])).stdout.trim();
}

/** Into another folder first: no test finds it half there. */
async function install(packages: string, requirements: string): Promise<void> {
  await mkdir(TOOLS, { recursive: true });
  const half = await mkdtemp(join(TOOLS, 'installing-'));
  const quiet = ['--quiet', '--no-input', '--disable-pip-version-check', '--retries', '1'];
  // Python compiles what it imports, a part of them.
  const what = ['--only-binary', ':all:', '--no-deps', '--no-compile', '--target', half];
  try {
    await run('python3', ['-m', 'pip', 'install', ...quiet, ...what, '-r', requirements], {
      timeout: 120_000,
    });
    await rename(half, packages).catch((error: unknown) => {
      if (!existsSync(packages)) throw error;
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

function reasonOf(error: unknown): string {
  const { stderr = '', message } = error as Error & { stderr?: string };
  const lines = (stderr || message).trim().split('\n');
  return lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1) ?? 'unknown';
}
