import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from './python-packages.ts';

const REQUIREMENTS = fileURLToPath(new URL('../../trace/requirements.txt', import.meta.url));
const NODE_MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));

/** The SDK needs Node 22; `.ci/run` brings one for machines whose own is older. */
const NODE =
  Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : (process.env['HOLDOVER_TEST_NODE'] ?? '');

/** How a program of one language is run here, or why it is not. */
export type Runner =
  | { readonly ok: true; run(file: string, args?: readonly string[]): Promise<Ran> }
  | { readonly ok: false; readonly why: string };

export type Ran = { readonly code: number; readonly out: string; readonly err: string };

type Run = { readonly cwd: string; readonly env: NodeJS.ProcessEnv };

/** Runners for programs in a folder. */
export type Runners = { readonly [language in 'python' | 'typescript']: Runner };

/** The runners this machine has, in that folder and with that environment. */
export async function openRunners({ cwd, env }: Run): Promise<Runners> {
  const python = await installPackages('v2-sdk', REQUIREMENTS);
  const where = { cwd, env: { ...process.env, ...env } };
  return {
    python: python.ok
      ? {
          ok: true,
          run: (file, args = []) =>
            finished('python3', [file, ...args], {
              ...where,
              env: { ...where.env, PYTHONPATH: python.packages },
            }),
        }
      : { ok: false, why: python.why },
    typescript: existsSync(NODE)
      ? { ok: true, run: (file, args = []) => runTypescript([file, ...args], where) }
      : { ok: false, why: 'Node 22 or newer is needed: HOLDOVER_TEST_NODE' },
  };
}

/** Modules are looked for beside the program. */
async function runTypescript(args: readonly string[], where: Run): Promise<Ran> {
  const modules = join(where.cwd, 'node_modules');
  if (!existsSync(modules)) await symlink(NODE_MODULES, modules);
  return finished(NODE, args, where);
}

function finished(program: string, args: readonly string[], where: Run): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(program, args, { ...where, timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
    });
  });
}
