import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench } from '../bench.ts';
import { THIS_CHECKOUT } from '../holdover.ts';
import { type Row, rounded } from '../measure.ts';
import type { Checkout } from './checkouts.ts';

const MOST_MB = 85;
const KINDS = {
  'production dependencies installed': ['--omit=dev'],
  'the same without optional ones': ['--omit=dev', '--omit=optional'],
} as const;

const run = promisify(execFile);

/** The bytes on a user's disk after an installation, Holdover itself apart. */
export const dependencies = (reference: Checkout): Bench => ({
  name: 'dependencies',
  needs: ['npm', 'du'],
  async run({ workDir }) {
    const rows: Row[] = [];
    for (const [figure, flags] of Object.entries(KINDS)) {
      const mb = await installedMb({ workDir, checkout: THIS_CHECKOUT, flags });
      const value = await installedMb({ workDir, checkout: reference.dir, flags });
      rows.push({
        bench: 'dependencies',
        figure,
        unit: 'MB',
        holdover: mb,
        reference: { name: reference.commit, value },
        reached: `${rounded(mb)} MB`,
        target: `≤ ${MOST_MB} MB`,
        holds: mb <= MOST_MB,
      });
    }
    return rows;
  },
});

/** Megabytes as `du` counts them. */
async function installedMb(options: {
  readonly workDir: string;
  readonly checkout: string;
  readonly flags: readonly string[];
}): Promise<number> {
  const { workDir, checkout, flags } = options;
  const dir = mkdtempSync(join(workDir, 'installed-'));
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(join(checkout, file), join(dir, file));
  }
  await run('npm', ['ci', ...flags, '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir });
  const { stdout } = await run('du', ['-sm', join(dir, 'node_modules')]);
  return Number.parseInt(stdout, 10);
}
