import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import type { Flags } from './flags.ts';
import { Refused } from './refused.ts';

/** Plain folders that are shared with other programs; `undefined`: none is. */
export type SharedPlaces = {
  readonly inputDirectory: string | undefined;
  readonly outputDirectory: string | undefined;
};

/** Makes the folders, and refuses those through which the data directory could be read or written. */
export function sharedPlaces(flags: Flags): SharedPlaces {
  return {
    inputDirectory: placeOf('--input-directory', flags.inputDirectory, flags.dataDir),
    outputDirectory: placeOf('--output-directory', flags.outputDirectory, flags.dataDir),
  };
}

function placeOf(flag: string, given: string | undefined, dataDir: string): string | undefined {
  if (given === undefined || given === '') return undefined;
  const folder = made(flag, given);
  const data = realOf(resolve(dataDir));
  if (!isWithin(folder, data) && !isWithin(data, folder)) return folder;
  throw new Refused(`option '${flag}' and --data-dir must not lie in one another: ${folder}`);
}

function made(flag: string, given: string): string {
  try {
    mkdirSync(given, { recursive: true });
    if (statSync(given).isDirectory()) return realpathSync(given);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Refused(`option '${flag}' cannot be used: ${reason}`);
  }
  throw new Refused(`option '${flag}' needs a folder, not '${given}'`);
}

/** A folder that is not there yet will be where its parent really is. */
export function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = resolve(path, '..');
    return parent === path
      ? path
      : resolve(realOf(parent), path.slice(parent.length).replace(/^[\\/]/, ''));
  }
}

/** True when a path is the folder, or below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
