import { spawn } from 'node:child_process';
import { once } from 'node:events';

type CommandRun = {
  readonly url: string;
  /** Where what the command prints goes. */
  readonly output: 'as it is' | 'to standard error';
};

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Runs a v1 script against a server, or waits for Ctrl-C when there is none; gives the exit code. */
export async function runCommand(command: readonly string[], run: CommandRun): Promise<number> {
  const stopped = waitForSignal();
  const [program, ...args] = command.map((part) => withAddress(part, run.url));
  if (program === undefined) return stopped.then(() => 0);
  const stdout = run.output === 'as it is' ? 'inherit' : 2;
  const child = spawn(program, args, {
    stdio: ['inherit', stdout, 'inherit'],
    env: { ...process.env, ...addresses(run.url) },
  });
  // A terminal sends Ctrl-C to both; a signal sent to this process alone is passed on to the script.
  void stopped.then((signal) => child.kill(signal));
  const [code, signal] = (await once(child, 'exit').catch((cause: unknown) => {
    throw new Error(`${program} cannot be run`, { cause });
  })) as [number | null, NodeJS.Signals | null];
  if (signal) process.stderr.write(`holdover trace: ${program} was ended by ${signal}\n`);
  else if (code !== 0) process.stderr.write(`holdover trace: ${program} ended with ${code}\n`);
  return code ?? 1;
}

/** The first one ends the session; a second one of either kind means now. */
function waitForSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const other of SIGNALS)
        process.removeAllListeners(other).once(other, () => process.exit(1));
      resolve(signal);
    };
    for (const signal of SIGNALS) process.once(signal, stop);
  });
}

function addresses(url: string): NodeJS.ProcessEnv {
  const { host } = new URL(url);
  return { COMFYUI_SERVER: host, SERVER_ADDRESS: host, COMFYUI_URL: url, HOLDOVER_URL: url };
}

function withAddress(text: string, url: string): string {
  return text.replaceAll('{server}', new URL(url).host).replaceAll('{url}', url);
}
