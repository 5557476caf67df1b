import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Not in the repository. Below a folder of this name hypothesis takes no package for code under test, and reads none. */
const TOOLS = fileURLToPath(new URL('../../../.ci-tools/site-packages/', import.meta.url));
const UV = 'uv==0.13.9';
/** Python compiles what it imports, a part of them. */
const OPTIONS = ['--quiet', '--only-binary', ':all:', '--no-deps', '--no-compile'];
const run = promisify(execFile);

/** The folder PyPI packages were installed into, or why they were not. */
export type Installed =
  | { readonly ok: true; readonly packages: string }
  | { readonly ok: false; readonly why: string };

/** Installs a list of versions under a name, once for each Python and each list. */
export async function installPackages(name: string, requirements: string): Promise<Installed> {
  try {
    const python = await findPython();
    const versions = createHash('sha256')
      .update(await readFile(requirements))
      .digest('hex');
    const packages = join(TOOLS, `${name}-${python.tag}-${versions.slice(0, 8)}`);
    const what = ['--requirement', requirements];
    // An index that only pip is told of is unknown to uv.
    await installOnce(packages, (half) =>
      installByUv(half, python.path, what).catch(() => installByPip(half, what)),
    );
    return { ok: true, packages };
  } catch (error) {
    return { ok: false, why: reasonOf(error) };
  }
}

async function findPython(): Promise<{ readonly path: string; readonly tag: string }> {
  const code =
    'import sys; assert sys.version_info >= (3, 10); print(sys.implementation.cache_tag, sys.executable)';
  const [, tag = '', path = ''] =
    /^(\S+) (.+)$/m.exec((await run('python3', ['-c', code])).stdout) ?? [];
  return { path, tag };
}

/** Into another folder first: no test finds it half there. */
async function installOnce(
  packages: string,
  install: (half: string) => Promise<unknown>,
): Promise<void> {
  if (existsSync(packages)) return;
  await mkdir(TOOLS, { recursive: true });
  const half = await mkdtemp(join(TOOLS, 'installing-'));
  try {
    await install(half);
    await rename(half, packages).catch((error: unknown) => {
      if (!existsSync(packages)) throw error;
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

/** A tenth of pip's processor time, which weighs each file that the index has of a package. */
async function installByUv(half: string, python: string, what: readonly string[]): Promise<void> {
  const uv = join(TOOLS, UV);
  await installOnce(uv, (folder) => installByPip(folder, [UV]));
  const args = ['pip', 'install', ...OPTIONS, '--python', python, '--target', half, ...what];
  const env = { ...process.env, UV_HTTP_RETRIES: '1' };
  await run(join(uv, 'bin', 'uv'), args, { env, timeout: 120_000 });
}

async function installByPip(half: string, what: readonly string[]): Promise<void> {
  const quiet = ['--no-input', '--disable-pip-version-check', '--retries', '1'];
  const args = ['-m', 'pip', 'install', ...OPTIONS, ...quiet, '--target', half, ...what];
  await run('python3', args, { timeout: 120_000 });
}

function reasonOf(error: unknown): string {
  const { stderr = '', message } = error as Error & { stderr?: string };
  const lines = (stderr || message).trim().split('\n');
  return lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1) ?? 'unknown';
}
