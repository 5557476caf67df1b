import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const REQUIREMENTS = fileURLToPath(new URL('../proxy/requirements.txt', import.meta.url));
/** Not in the repository. */
const TOOLS = fileURLToPath(new URL('../../.ci-tools/', import.meta.url));
const run = promisify(execFile);

/** Where the self-hosted v2 server is installed, or why it is not. */
export type Installed =
  | { readonly ok: true; readonly packages: string }
  | { readonly ok: false; readonly why: string };

/** Installs it once for each Python and each list of versions. */
export async function installComfyApiProxy(): Promise<Installed> {
  try {
    const python = await pythonTag();
    const versions = createHash('sha256')
      .update(await readFile(REQUIREMENTS))
      .digest('hex');
    const packages = join(TOOLS, `comfy-api-proxy-${python}-${versions.slice(0, 8)}`);
    if (!existsSync(packages)) await install(packages);
    return { ok: true, packages };
  } catch (error) {
    return { ok: false, why: reasonOf(error) };
  }
}

async function pythonTag(): Promise<string> {
  const code =
    'import sys; assert sys.version_info >= (3, 10); print(sys.implementation.cache_tag)';
  return (await run('python3', ['-c', code])).stdout.trim();
}

/** Elsewhere first: nobody finds it half there. */
async function install(packages: string): Promise<void> {
  await mkdir(TOOLS, { recursive: true });
  const half = await mkdtemp(join(TOOLS, 'installing-'));
  const quiet = ['--quiet', '--no-input', '--disable-pip-version-check', '--retries', '1'];
  const what = ['--only-binary', ':all:', '--no-deps', '--target', half, '-r', REQUIREMENTS];
  try {
    await run('python3', ['-m', 'pip', 'install', ...quiet, ...what], { timeout: 120_000 });
    await rename(half, packages).catch((error: unknown) => {
      if (!existsSync(packages)) throw error;
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

function reasonOf(error: unknown): string {
  const { stderr = '', message } = error as Error & { stderr?: string };
  const lines = (stderr || message).trim().split('\n');
  return lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1) ?? 'unknown';
}

/** The server as a process, in front of a v1 engine. */
export type ComfyApiProxy = {
  readonly url: string;
  log(): string;
  dispose(): Promise<void>;
};

export async function startComfyApiProxy(options: {
  readonly packages: string;
  readonly engineUrl: string;
  readonly args?: readonly string[];
}): Promise<ComfyApiProxy> {
  const { packages, engineUrl, args = [] } = options;
  const port = await freePort();
  const flags = ['run', '--comfyui', engineUrl, '--port', String(port), ...args];
  const child = spawn('python3', ['-m', 'comfy_api_proxy.cli', ...flags], {
    env: { ...process.env, PYTHONPATH: packages, PYTHONUNBUFFERED: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => log.push(chunk.toString()));
  }
  await untilServing(child, log);
  return {
    url: `http://127.0.0.1:${port}`,
    log: () => log.join(''),
    async dispose() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

function untilServing(child: ChildProcess, log: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', () => log.join('').includes('Running on') && resolve());
    child.once('exit', (code) => reject(new Error(`exited with ${code}: ${log.join('')}`)));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}
