import { Mutex } from 'async-mutex';
import { backupCommand } from '../../../src/cli/backup.ts';
import { checkCommand } from '../../../src/cli/check.ts';
import { convertCommand } from '../../../src/cli/convert.ts';
import { importCommand } from '../../../src/cli/import.ts';
import { reportCommand } from '../../../src/cli/report.ts';
import { restoreCommand } from '../../../src/cli/restore.ts';

/** The output of a command and its exit code; `null`: it was killed. */
export type Ran = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

const COMMANDS = {
  backup: backupCommand,
  check: checkCommand,
  convert: convertCommand,
  import: importCommand,
  report: reportCommand,
  restore: restoreCommand,
} as const;

const mutex = new Mutex();

/**
 * Runs a subcommand in this process, as `src/main.ts` runs it in one of its own: a start of the program
 * takes longer than most commands do. One at a time, because it prints to this process's streams and
 * reads its environment.
 */
export function runCommandHere(
  [name, ...argv]: readonly [keyof typeof COMMANDS, ...string[]],
  env: NodeJS.ProcessEnv = {},
): Promise<Ran> {
  if (env['HOLDOVER_CRASH_AT'] !== undefined) throw new Error('it would kill this process');
  return mutex.runExclusive(async () => {
    const { stdout, stderr } = process;
    const captured = { stdout: capture(stdout), stderr: capture(stderr) };
    const before = { ...process.env };
    Object.assign(process.env, env);
    try {
      const code = await COMMANDS[name](argv);
      return { code, stdout: captured.stdout.text(), stderr: captured.stderr.text() };
    } finally {
      for (const key of Object.keys(env)) delete process.env[key];
      Object.assign(process.env, before);
      captured.stdout.restore();
      captured.stderr.restore();
    }
  });
}

function capture(stream: NodeJS.WriteStream): { text(): string; restore(): void } {
  const write = Reflect.get(stream, 'write') as typeof stream.write;
  let text = '';
  stream.write = (chunk: string | Uint8Array): boolean => {
    text += Buffer.from(chunk as string).toString();
    return true;
  };
  return { text: () => text, restore: () => void (stream.write = write) };
}
