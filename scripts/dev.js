// `npm run dev`: compiles on every change and restarts the server with what was compiled. Node 20
// cannot run TypeScript, so `tsc --watch` runs beside `node --watch`.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
const server = ['--watch', '--watch-preserve-output', 'dist/main.js', ...process.argv.slice(2)];

const children = [[tsc, '--watch', '--preserveWatchOutput'], server].map((args) =>
  spawn(process.execPath, args, { stdio: 'inherit', cwd: fileURLToPath(new URL('..', import.meta.url)) }),
);

function stop() {
  for (const child of children) child.kill('SIGTERM');
}

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
for (const child of children) child.once('exit', stop);
