import { Mutex } from 'async-mutex';

/** What a command printed, and its exit code; `null`: it was killed. */
export type Ran = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

const mutex = new Mutex();

/**
 * Runs a subcommand in this process, as `src/main.ts` runs it in one of its own: a start of the program
 * takes longer than most commands do. One at a time, because it prints to this process's streams.
 */
export function runCommandHere(
  command: (argv: readonly string[]) => Promise<number>,
  argv: readonly string[],
): Promise<Ran> {
  return mutex.runExclusive(async () => {
    const stdout = capture(process.stdout);
    const stderr = capture(process.stderr);
    try {
      const code = await command(argv);
      return { code, stdout: stdout.text(), stderr: stderr.text() };
    } finally {
      stdout.restore();
      stderr.restore();
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
