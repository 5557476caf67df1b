import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { freePort } from '../processes/free-port.ts';
import { kill9 } from '../processes/kill9.ts';
import { type Installed, installPackages } from '../clients/python-packages.ts';

const REQUIREMENTS = fileURLToPath(new URL('../../proxy/requirements.txt', import.meta.url));

/** Installs the self-hosted v2 server, or tells why it cannot. */
export function installComfyApiProxy(): Promise<Installed> {
  return installPackages('comfy-api-proxy', REQUIREMENTS);
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
  readonly port?: number;
}): Promise<ComfyApiProxy> {
  const { packages, engineUrl, args = [] } = options;
  const port = options.port ?? (await freePort());
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
    dispose: () => kill9(child),
  };
}

function untilServing(child: ChildProcess, log: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', () => log.join('').includes('Running on') && resolve());
    child.once('exit', (code) => reject(new Error(`exited with ${code}: ${log.join('')}`)));
  });
}
