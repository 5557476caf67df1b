import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';

/**
 * Makes the plain folders that are shared with other programs, and refuses those through which the
 * data directory could be read or written; `undefined`: there is none.
 */
export function sharedDirectories(
  flags: Flags,
): Readonly<Record<'inputDirectory' | 'outputDirectory', string | undefined>> {
  return {
    inputDirectory: requireDirectory('--input-directory', flags.inputDirectory, flags.dataDir),
    outputDirectory: requireDirectory('--output-directory', flags.outputDirectory, flags.dataDir),
  };
}

function requireDirectory(
  flag: string,
  given: string | undefined,
  dataDir: string,
): string | undefined {
  if (given === undefined || given === '') return undefined;
  const folder = createDirectory(flag, given);
  const data = realPathOf(resolve(dataDir));
  if (!isWithin(folder, data) && !isWithin(data, folder)) return folder;
  throw new InvalidSetting(
    `option '${flag}' and --data-dir must not lie in one another: ${folder}`,
  );
}

function createDirectory(flag: string, given: string): string {
  try {
    mkdirSync(given, { recursive: true });
    if (statSync(given).isDirectory()) return realpathSync(given);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidSetting(`option '${flag}' cannot be used: ${reason}`);
  }
  throw new InvalidSetting(`option '${flag}' needs a folder, not '${given}'`);
}

/** A folder that is not there yet will be where its parent really is. */
export function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = resolve(path, '..');
    return parent === path
      ? path
      : resolve(realPathOf(parent), path.slice(parent.length).replace(/^[\\/]/, ''));
  }
}

/** True when a path is the folder, or below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
