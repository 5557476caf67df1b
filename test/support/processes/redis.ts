import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { kill9 } from './kill9.ts';

/** A Redis of the tests' own, durable to the last answered command. */
export type RedisServer = {
  readonly url: string;
  readonly port: number;
  /** Dies at once; what it answered is on disk. */
  kill9(): Promise<void>;
  /** The same data on the same port. */
  restart(): Promise<void>;
  /** Stops answering, with all connections open. */
  pause(): void;
  resume(): void;
  /** All it keeps on disk, and so all it was ever told to keep. */
  everything(): Promise<string>;
  dispose(): Promise<void>;
};

const READY_WITHIN_MS = 15_000;

/** Why tests over Redis do not run here; empty when they do. */
export function redisMissing(): string {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return '';
  } catch {
    return ' (NOT RUN: there is no redis-server on this machine)';
  }
}

/** Starts one on a free port, with its data in a temporary folder; `more`: settings of its own, as `requirepass`. */
export async function startRedis(
  more: { readonly [setting: string]: string } = {},
): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), 'holdover-redis-'));
  const port = await freePort();
  let child = await start(port, dir, more);

  const password = more['requirepass'];
  return {
    url: `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`,
    port,
    kill9: () => kill9(child),
    async restart() {
      await kill9(child);
      child = await start(port, dir, more);
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async everything() {
      const names = await readdir(dir, { recursive: true, withFileTypes: true });
      const files = names.filter((one) => one.isFile());
      const texts = await Promise.all(
        files.map((one) => readFile(join(one.parentPath, one.name), 'latin1')),
      );
      return texts.join('\n');
    },
    async dispose() {
      await kill9(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function start(port: number, dir: string, more: object): Promise<ChildProcess> {
  const settings = {
    ...more,
    bind: '127.0.0.1',
    port: String(port),
    dir,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  for (const deadline = Date.now() + READY_WITHIN_MS; Date.now() < deadline;) {
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`);
    if (await answers(port)) return child;
    await delay(50);
  }
  child.kill('SIGKILL');
  throw new Error('redis-server did not answer');
}

/** A Redis that is still reading its file answers, but not with `PONG`; one with a password asks for it. */
async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    socket.write('PING\r\n');
    const [reply] = (await once(socket, 'data')) as [Buffer];
    return /^(\+PONG|-NOAUTH)/.test(reply.toString());
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
