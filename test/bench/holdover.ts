import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Program, type Side, startProgram } from './program.ts';

export const THIS_CHECKOUT = fileURLToPath(new URL('../../../..', import.meta.url));

export type HoldoverOptions = {
  readonly workDir: string;
  /** A built checkout of this repository; by default this one. */
  readonly checkout?: string | undefined;
  /** By default it is the program under measurement. */
  readonly side?: Side;
  readonly args?: readonly string[];
};

/** The built server as a user starts it, its log in a file, its data folder new. */
export async function startHoldover(options: HoldoverOptions): Promise<Program> {
  const { workDir, checkout = THIS_CHECKOUT, side = 'subject', args = [] } = options;
  const dataDir = mkdtempSync(join(workDir, 'data-'));
  return startProgram({
    command: process.execPath,
    args: [join(checkout, 'dist/main.js'), '--port', '0', '--data-dir', dataDir, ...args],
    side,
    logFile: join(workDir, 'holdover.log'),
  });
}
