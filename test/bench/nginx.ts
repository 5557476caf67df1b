import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { once } from 'node:events';
import { type Program, type Side, startProgram } from './program.ts';

/** Starts an nginx of our own on a free port; `server` is the inside of its server block. */
export async function startNginx(options: {
  readonly workDir: string;
  readonly side: Side;
  readonly server: string;
}): Promise<Program> {
  const dir = mkdtempSync(join(options.workDir, 'nginx-'));
  const port = await freePort();
  mkdirSync(join(dir, 'temp'));
  writeFileSync(join(dir, 'nginx.conf'), configOf({ dir, port, server: options.server }));
  const args = ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', join(dir, 'error.log')];
  const url = `http://127.0.0.1:${port}`;
  const program = await startProgram({ command: 'nginx', args, side: options.side, url });
  await untilOpen(port);
  return program;
}

function configOf({ dir, port, server }: { dir: string; port: number; server: string }): string {
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(dir, 'temp', name)};`)
    .join('\n  ');
  return `${user}
daemon off;
master_process off;
pid ${join(dir, 'nginx.pid')};
error_log ${join(dir, 'error.log')} crit;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  client_max_body_size 0;
  ${temp}
  server {
    listen 127.0.0.1:${port};
    ${server}
  }
}
`;
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

async function untilOpen(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await delay(50);
  }
  throw new Error('nginx did not start');
}
