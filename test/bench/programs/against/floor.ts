// The floor: only what a prompt cannot do without. One commit that is synced before the answer, a picture
// packed and written by a thread, one commit before the last frame, and as many frames as a prompt sends.
import { randomUUID } from 'node:crypto';
import { fdatasync, openSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import { join } from 'node:path';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { deflateSync } from 'node:zlib';
import { DatabaseSync } from '@photostructure/sqlite';
import { type WebSocket, WebSocketServer } from 'ws';

/** Of the picture of 8 × 8 that the prompts of this benchmark make. */
const PIXEL_BYTES = 8 * (1 + 8 * 3);
/** Frames of such a prompt before its last one. */
const FRAMES = 13;

type Order = { readonly id: string; readonly body: string };

if (isMainThread) serve(process.argv[2] ?? '');
else makePictures(workerData as string);

function makePictures(dir: string): void {
  parentPort?.on('message', ({ id, body }: Order) => {
    const { prompt } = JSON.parse(body) as { prompt: object };
    const packed = deflateSync(Buffer.alloc(PIXEL_BYTES, JSON.stringify(prompt)));
    writeFileSync(join(dir, `${id}.png`), packed, { flag: 'wx' });
    parentPort?.postMessage(id);
  });
}

function serve(dir: string): void {
  const records = openRecords(join(dir, `${randomUUID()}.db`));
  const thread = new Worker(new URL(import.meta.url), { workerData: dir });
  let socket: WebSocket | undefined;
  const answered = new Map<string, Promise<void>>();

  async function accept(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await readBody(req);
    const id = randomUUID();
    records.insert(id, body);
    const synced = records.sync();
    answered.set(id, synced);
    thread.postMessage({ id, body } satisfies Order);
    await synced;
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ prompt_id: id, number: 1, node_errors: {} }));
  }

  async function finish(id: string): Promise<void> {
    await answered.get(id);
    answered.delete(id);
    const data = { prompt_id: id, node: '1', timestamp: Date.now() };
    for (let left = FRAMES; left > 0; left--) send({ type: 'executing', data });
    records.finish(id, JSON.stringify({ status: 'success', outputs: [id] }));
    send({ type: 'execution_success', data });
  }

  function send(frame: object): void {
    socket?.send(JSON.stringify(frame));
  }

  thread.on('message', (id: string) => void finish(id));
  const server = createServer((req, res) => void accept(req, res));
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (opened) => (socket = opened));
  process.on('SIGTERM', () => process.exit(0));
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number };
    process.stdout.write(`serving http://127.0.0.1:${port}\n`);
  });
}

async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** The rows of a prompt, its job, its file and the name of that. */
function openRecords(path: string) {
  const db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  for (const table of ['prompts', 'jobs', 'assets', 'files'])
    db.exec(`CREATE TABLE ${table} (id TEXT PRIMARY KEY, body TEXT, entry TEXT) STRICT`);
  const log = openSync(`${path}-wal`, 'r+');
  const inserts = (tables: readonly string[]) =>
    tables.map((table) => db.prepare(`INSERT INTO ${table} (id, body) VALUES (?, ?)`));
  const first = inserts(['prompts', 'jobs']);
  const last = inserts(['assets', 'files']);
  const ends = ['prompts', 'jobs'].map((table) =>
    db.prepare(`UPDATE ${table} SET entry = ? WHERE id = ?`),
  );
  const inTransaction = (work: () => void): void => {
    db.exec('BEGIN');
    work();
    db.exec('COMMIT');
  };
  return {
    insert: (id: string, body: string) =>
      inTransaction(() => first.forEach((statement) => statement.run(id, body))),
    finish: (id: string, entry: string) =>
      inTransaction(() => {
        last.forEach((statement) => statement.run(id, entry));
        ends.forEach((statement) => statement.run(entry, id));
      }),
    sync: () =>
      new Promise<void>((resolve, reject) =>
        fdatasync(log, (error) => (error ? reject(error) : resolve())),
      ),
  };
}
