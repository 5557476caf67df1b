import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** SIGKILL, or nothing if it is gone already; resolves when the process is gone. */
export async function kill9(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}
