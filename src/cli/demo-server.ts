import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { packageUrl } from '../lib/package-url.ts';

/** An error that the user can correct. It is printed without a stack. */
export class DemoError extends Error {}

type AnsweredRequest = { msg: string; method: string; url: string; status: number; v2: string[] };

/**
 * Starts a server process on a free port. `requests` has the v1 calls that it answered with their v2 calls, from its
 * log.
 */
export async function startServer(args: readonly string[]) {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-demo-'));
  const main = fileURLToPath(packageUrl('dist/main.js'));
  const child = spawn(process.execPath, [main, '--port', '0', '--data-dir', dataDir, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOLDOVER_LOG_LEVEL: 'info' },
  });
  const requests: AnsweredRequest[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (!line.startsWith('{')) return void process.stderr.write(`${line}\n`);
    const entry = JSON.parse(line) as AnsweredRequest;
    if (entry.msg === 'request answered') requests.push(entry);
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => {
      rmSync(dataDir, { recursive: true, force: true });
      reject(new DemoError(`Holdover did not start (exit code ${code}).`));
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /^To see the GUI go to: (\S+)$/.exec(line)?.[1];
      if (found) resolve(found);
    });
  });
  return {
    url,
    requests,
    async stop(): Promise<void> {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
