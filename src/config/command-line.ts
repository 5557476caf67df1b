import { type Command, CommanderError } from 'commander';
import { type Flags, OPTIONS } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';

/** `text` is what to print: help, the version, or what is wrong with a flag. */
export type CommandExit = { readonly kind: 'exit'; readonly code: number; readonly text: string };

/** How a command line ends that could not be used; `printed` is what its parser has printed. */
export function exitFor(error: unknown, printed: string): CommandExit {
  if (error instanceof InvalidSetting)
    return { kind: 'exit', code: 2, text: `error: ${error.message}\n` };
  if (!(error instanceof CommanderError)) throw error;
  if (error.exitCode === 0) return { kind: 'exit', code: 0, text: printed };
  return { kind: 'exit', code: 2, text: `${error.message.replaceAll('\n', ' ')}\n` };
}

/** Gives a command flags of the server. */
export function addServerOptions(command: Command, names: readonly (keyof Flags)[]): Command {
  const wanted = new Set<string>(names);
  for (const option of OPTIONS) if (wanted.has(option.attributeName())) command.addOption(option);
  return command;
}
