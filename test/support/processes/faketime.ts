import { existsSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tempFolder } from '../graphs/v1-folders.ts';

/** A system clock of a process that a test can set while the process runs. */
export type SettableClock = {
  /** The environment to start the process with. */
  readonly env: NodeJS.ProcessEnv;
  /** Sets it so far from the right time: `+1d`, `-1h`, `+0`. Timers go on as they would. */
  set(offset: string): Promise<void>;
};

const LIBRARY = 'faketime/libfaketimeMT.so.1';
const FOLDERS = ['/usr/lib', '/usr/local/lib'];

/** Why tests that set clocks do not run here; empty when they do. */
export function faketimeMissing(): string {
  return library() === undefined ? ' (NOT RUN: there is no libfaketime on this machine)' : '';
}

/** A clock that is right at first. */
export async function settableClock(): Promise<SettableClock> {
  const file = join(await tempFolder('clock'), 'offset');
  await writeFile(file, '+0\n');
  return {
    env: {
      LD_PRELOAD: library(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    set: (offset) => writeFile(file, `${offset}\n`),
  };
}

function library(): string | undefined {
  const below = FOLDERS.filter((folder) => existsSync(folder)).flatMap((folder) => [
    folder,
    ...readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name.endsWith('-linux-gnu'))
      .map((entry) => join(folder, entry.name)),
  ]);
  return below.map((folder) => join(folder, LIBRARY)).find((path) => existsSync(path));
}
