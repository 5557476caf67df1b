// The floor: only what a prompt cannot do without. One commit that is synced before the answer, a picture
// packed and written by a thread, one commit before the last frame, and as many frames as a prompt sends.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { deflateSync } from 'node:zlib';
import { openRecords } from './floor-records.ts';
import { serveFloor } from './floor-server.ts';

/** Of the picture of 8 × 8 that the prompts of this benchmark make. */
const PIXEL_BYTES = 8 * (1 + 8 * 3);

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
  const tables = { first: ['prompts', 'jobs'], last: ['assets', 'files'] };
  const records = openRecords(join(dir, `${randomUUID()}.db`), tables);
  const thread = new Worker(new URL(import.meta.url), { workerData: dir });
  const answered = new Map<string, Promise<void>>();

  const client = serveFloor(async (body) => {
    const id = randomUUID();
    records.insert(id, body);
    const synced = records.sync();
    answered.set(id, synced);
    thread.postMessage({ id, body } satisfies Order);
    await synced;
    return id;
  });

  async function finish(id: string): Promise<void> {
    await answered.get(id);
    answered.delete(id);
    client.sendFrames(id);
    records.finish(id, JSON.stringify({ status: 'success', outputs: [id] }));
    client.sendLast(id);
  }

  thread.on('message', (id: string) => void finish(id));
}
