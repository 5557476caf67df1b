import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const NGINX = process.env['HOLDOVER_TEST_NGINX'] ?? 'nginx';
const HAPROXY = process.env['HOLDOVER_TEST_HAPROXY'] ?? 'haproxy';

/** The host of the examples in the documentation. */
export const PUBLIC_HOST = 'comfy.example.com';

const DOCS = new URL('../../../docs/', import.meta.url);

/** Programs that this machine lacks; empty: everything can run. */
export function missingPrograms(): readonly string[] {
  const isThere = (program: string, flag: string): boolean =>
    spawnSync(program, [flag]).status === 0;
  return [
    ...(isThere(NGINX, '-v') ? [] : ['nginx']),
    ...(isThere(HAPROXY, '-v') ? [] : ['haproxy']),
    ...(isThere('openssl', 'version') ? [] : ['openssl']),
  ];
}

/** A proxy with TLS that runs an example of the documentation. */
export type RunningProxy = {
  readonly port: number;
  /** PEM of its certificate, and the file it is in. */
  readonly ca: string;
  readonly caFile: string;
  close(): Promise<void>;
};

/** The examples of one kind in a page of the documentation, in their order. */
export function examplesOf(language: string, page = 'proxies.md'): readonly string[] {
  const text = readFileSync(new URL(page, DOCS), 'utf8');
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms');
  return [...text.matchAll(fence)].map(([, example = '']) => example);
}

/** Replaces each text, which must be there: an example that has changed must not be half used. */
export function withChanges(text: string, changes: readonly (readonly [string, string])[]): string {
  let changed = text;
  for (const [before, after] of changes) {
    if (!changed.includes(before)) throw new Error(`the example lacks ${JSON.stringify(before)}`);
    changed = changed.replaceAll(before, after);
  }
  return changed;
}

/** nginx with the example; `changes` beyond ports and files of the machine. */
export async function startNginx(options: {
  readonly upstreamPort: number;
  readonly port: number;
  readonly changes?: readonly (readonly [string, string])[];
}): Promise<RunningProxy> {
  const proxyFiles = makeProxyFiles();
  const [example = ''] = examplesOf('nginx');
  const server = withChanges(example, [
    ['listen 443 ssl', `listen 127.0.0.1:${options.port} ssl`],
    ['/etc/ssl/comfy.example.com.crt', proxyFiles.certificate],
    ['/etc/ssl/comfy.example.com.key', proxyFiles.key],
    ['127.0.0.1:8188', `127.0.0.1:${options.upstreamPort}`],
    ...(options.changes ?? []),
  ]);
  const config = join(proxyFiles.dir, 'nginx.conf');
  writeFileSync(config, nginxConfig(proxyFiles.dir, server));
  const args = ['-p', proxyFiles.dir, '-c', config, '-e', join(proxyFiles.dir, 'error.log')];
  return run(spawn(NGINX, args, { stdio: 'ignore' }), options.port, proxyFiles);
}

/** HAProxy with the example. */
export async function startHaproxy(options: {
  readonly upstreamPort: number;
  readonly port: number;
}): Promise<RunningProxy> {
  const proxyFiles = makeProxyFiles();
  const pem = join(proxyFiles.dir, 'both.pem');
  writeFileSync(
    pem,
    readFileSync(proxyFiles.certificate, 'utf8') + readFileSync(proxyFiles.key, 'utf8'),
  );
  const [example = ''] = examplesOf('haproxy');
  const config = join(proxyFiles.dir, 'haproxy.cfg');
  writeFileSync(
    config,
    withChanges(example, [
      ['bind :443', `bind 127.0.0.1:${options.port}`],
      ['/etc/haproxy/comfy.example.com.pem', pem],
      ['127.0.0.1:8188', `127.0.0.1:${options.upstreamPort}`],
    ]),
  );
  const child = spawn(HAPROXY, ['-db', '-q', '-f', config], { stdio: 'ignore' });
  return run(child, options.port, proxyFiles);
}

type ProxyFiles = { readonly dir: string; readonly certificate: string; readonly key: string };

function makeProxyFiles(): ProxyFiles {
  const dir = mkdtempSync(join(tmpdir(), 'holdover-proxy-'));
  const proxyFiles = { dir, certificate: join(dir, 'public.crt'), key: join(dir, 'public.key') };
  const names = `subjectAltName=DNS:${PUBLIC_HOST},DNS:localhost,IP:127.0.0.1`;
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', proxyFiles.key, '-out', proxyFiles.certificate];
  const subject = ['-subj', `/CN=${PUBLIC_HOST}`, '-addext', names];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...key, ...files, ...subject], {
    stdio: 'ignore',
  });
  mkdirSync(join(dir, 'temp'));
  return proxyFiles;
}

/** A whole configuration file of nginx around a server block. */
function nginxConfig(dir: string, server: string): string {
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${join(dir, 'temp', name)};`)
    .join('\n');
  return `${user}
daemon off;
worker_processes 1;
pid ${join(dir, 'nginx.pid')};
error_log ${join(dir, 'error.log')};
events { worker_connections 1024; }
http {
  access_log off;
${temp}
${server}
}
`;
}

async function run(
  child: ChildProcess,
  port: number,
  proxyFiles: ProxyFiles,
): Promise<RunningProxy> {
  const exited = once(child, 'exit');
  const close = async (): Promise<void> => {
    // A killed master of nginx leaves its workers behind.
    child.kill('SIGTERM');
    await exited;
    rmSync(proxyFiles.dir, { recursive: true, force: true });
  };
  for (let tries = 0; tries < 200; tries++) {
    if (child.exitCode !== null) break;
    if (await isOpen(port)) {
      const ca = readFileSync(proxyFiles.certificate, 'utf8');
      return { port, ca, caFile: proxyFiles.certificate, close };
    }
    await delay(50);
  }
  await close();
  throw new Error(`${child.spawnfile} does not serve`);
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  socket.destroy();
  return opened;
}
