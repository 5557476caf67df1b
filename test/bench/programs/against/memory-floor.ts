// The floor of a process after its start: it has loaded what an embedded server cannot leave out, and does nothing. The
// engine thread has sharp's codecs only where an argument asks for them: Holdover's own are smaller.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Worker, isMainThread } from 'node:worker_threads';
import Koa from 'koa';
import { WebSocketServer } from 'ws';
import { openRecords } from './floor-records.ts';

if (isMainThread) {
  const tables = { first: ['prompts', 'jobs'], last: ['assets', 'files'] };
  openRecords(join(process.argv[2] ?? '', `${randomUUID()}.db`), tables);
  new Worker(new URL(import.meta.url), { execArgv: [] });
  const server = createServer((req, res) => void new Koa().callback()(req, res));
  new WebSocketServer({ server });
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number };
    process.stdout.write(`serving http://127.0.0.1:${port}\n`);
  });
} else {
  setInterval(() => {}, 1e6);
}
