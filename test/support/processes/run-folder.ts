import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Gives the run a folder for all its files, one for all its projects. When it ends, or is interrupted, it leaves
 * neither that nor a process that it started.
 */
export default function useRunFolder(): void {
  if (tmpdir().includes('holdover-run-')) return;
  const folder = mkdtempSync(join(tmpdir(), 'holdover-run-'));
  // The image of the container test runs as another user.
  chmodSync(folder, 0o711);
  process.env['TMPDIR'] = folder;
  process.once('exit', () => {
    for (const id of processesIn(folder)) process.kill(id, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
}

/** Processes started with this folder for their files, where the system tells. */
function processesIn(folder: string): number[] {
  return namesIn('/proc')
    .map(Number)
    .filter((id) => id > 0 && id !== process.pid)
    .filter((id) => environmentOf(id).includes(`TMPDIR=${folder}\0`));
}

function environmentOf(id: number): string {
  try {
    return readFileSync(`/proc/${id}/environ`, 'utf8');
  } catch {
    return '';
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
