import { execFile, execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runFolder } from '../graphs/v1-folders.ts';

/** How a script ended, and what it left in its output directory. */
export type ScriptRun = {
  readonly code: number;
  readonly stderr: string;
  /** The last line it printed, parsed. */
  readonly told: any;
  /** The files it says it saved. */
  readonly files: readonly Buffer[];
};

const SCRIPTS = new URL('../scripts/', import.meta.url);

/** Runs one of `scripts/` as a user would: a workflow file, an output directory, a child process. */
export async function runScript(
  name: string,
  graph: object | string,
  options: {
    before: readonly string[];
    after?: readonly string[];
    /** Beside that of the tests. */
    env?: NodeJS.ProcessEnv;
  },
): Promise<ScriptRun> {
  const dir = await runFolder('script');
  const workflow = join(dir, 'workflow.json');
  await writeFile(workflow, typeof graph === 'string' ? graph : JSON.stringify(graph));
  const program = name.endsWith('.py') ? 'python3' : process.execPath;
  const path = fileURLToPath(new URL(name, SCRIPTS));
  const args = [path, ...options.before, workflow, dir, ...(options.after ?? [])];
  const { code, stdout, stderr } = await finished(program, args, options.env);
  const told = code === 0 ? JSON.parse(stdout) : undefined;
  const saved: readonly string[] = told?.saved ?? [];
  const files = await Promise.all(saved.map((file) => readFile(join(dir, file))));
  return { code, stderr, told, files };
}

/** True when Python is installed. */
export function hasPython(): boolean {
  try {
    execFileSync('python3', ['-c', 'import urllib.request'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

type Finished = { readonly code: number; readonly stdout: string; readonly stderr: string };

function finished(
  program: string,
  args: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<Finished> {
  const env = { ...process.env, ...more };
  return new Promise((resolve) => {
    execFile(program, args, { timeout: 30_000, env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? -1);
      resolve({ code, stdout, stderr });
    });
  });
}
