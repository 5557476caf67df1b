import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { kill9 } from './kill9.ts';

/** A server with buckets, of another make than any code here, on files in a temporary folder. */
export type BucketServer = {
  readonly endpoint: string;
  /** Its bucket `files` is there from the start. */
  readonly credentials: NodeJS.ProcessEnv;
  /** The folder with the bytes of a bucket: keys are paths. */
  readonly folderOf: (bucket: string) => string;
  kill9(): Promise<void>;
  /** The same buckets on the same port. */
  restart(): Promise<void>;
  dispose(): Promise<void>;
};

const READY_WITHIN_MS = 15_000;
const KEYS = { AWS_ACCESS_KEY_ID: 'test-key', AWS_SECRET_ACCESS_KEY: 'test-secret-of-the-bucket' };

/** Why tests over a bucket do not run here; empty when they do. */
export function bucketMissing(): string {
  return bucketProgram() === undefined
    ? ' (NOT RUN: there is no versitygw on this machine: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)'
    : '';
}

/** The program, where there is one. */
export function bucketProgram(): string | undefined {
  const installed = [join(homedir(), 'go/bin/versitygw'), '/usr/local/bin/versitygw'];
  const found = [process.env['VERSITYGW'] ?? '', ...installed].find(
    (path) => path !== '' && existsSync(path),
  );
  if (found !== undefined) return found;
  try {
    execFileSync('versitygw', ['--version'], { stdio: 'ignore' });
    return 'versitygw';
  } catch {
    return undefined;
  }
}

export async function startBucketServer(): Promise<BucketServer> {
  const dir = await mkdtemp(join(tmpdir(), 'holdover-bucket-'));
  const port = await freePort();
  const folderOf = (bucket: string): string => join(dir, 'buckets', bucket);
  await mkdir(folderOf('files'), { recursive: true });
  let child = await start(port, dir);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    credentials: KEYS,
    folderOf,
    kill9: () => kill9(child),
    async restart() {
      await kill9(child);
      child = await start(port, dir);
    },
    async dispose() {
      await kill9(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function start(port: number, dir: string): Promise<ChildProcess> {
  const args = ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', join(dir, 'buckets')];
  const env = {
    ...process.env,
    ROOT_ACCESS_KEY: KEYS.AWS_ACCESS_KEY_ID,
    ROOT_SECRET_KEY: KEYS.AWS_SECRET_ACCESS_KEY,
  };
  const child = spawn(bucketProgram() ?? '', args, { stdio: 'ignore', env });
  for (const deadline = Date.now() + READY_WITHIN_MS; Date.now() < deadline;) {
    if (child.exitCode !== null) throw new Error(`versitygw ended with ${child.exitCode}`);
    if (await answers(port)) return child;
    await delay(50);
  }
  child.kill('SIGKILL');
  throw new Error('versitygw did not answer');
}

async function answers(port: number): Promise<boolean> {
  try {
    await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(1000) });
    return true;
  } catch {
    return false;
  }
}
