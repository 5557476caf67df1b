// Pictures that take long to decode or draw: the thread that answers does none of it.
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { beforeAll, expect, test, vi } from 'vitest';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { readPngChunks, writePng } from '../../src/nodes/codecs/png-chunks.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const SIDE = 5000;
/** The processor time of reading a file, sending an answer and collecting garbage; drawing one takes longer. */
const MAX_MAIN_THREAD_MS = 60;

const server = useHoldover({ upstream: 'embedded' });

beforeAll(async () => {
  await uploadInput(server.url, { name: 'bitmap.bmp', bytes: emptyBitmap() });
  await uploadInput(server.url, { name: 'chunks.png', bytes: await pngOfManyChunks() });
  // The first picture loads the decoders.
  await view('chunks.png&channel=rgb');
});

/** About one KB: 256 colours, and no pixels in the compressed data. */
function emptyBitmap(): Buffer {
  const bytes = Buffer.alloc(1080);
  bytes.write('BM');
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(1078, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(SIDE, 18);
  bytes.writeInt32LE(SIDE, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(8, 28);
  bytes.writeUInt32LE(1, 30);
  bytes.writeUInt32LE(256, 46);
  bytes.set([0, 1], 1078);
  return bytes;
}

/** One pixel behind half a million short texts. */
async function pngOfManyChunks(): Promise<Buffer> {
  const [header, ...rest] = readPngChunks(await sharp(WHITE_PIXEL).png().toBuffer());
  const png = writePng([header!, { type: 'tEXt', data: Buffer.from('k\0') }, ...rest]);
  const [behindHeader, behindText] = [33, 47];
  const text = png.subarray(behindHeader, behindText);
  const texts = Buffer.alloc(text.length * 500_000, text);
  return Buffer.concat([png.subarray(0, behindHeader), texts, png.subarray(behindText)]);
}

async function view(query: string): Promise<void> {
  const answer = await fetch(`${server.url}/view?type=input&filename=${query}`);
  // A picture that takes too long on a busy machine is a 400.
  expect([200, 400]).toContain(answer.status);
  await answer.arrayBuffer();
}

async function uploadMask(name: string): Promise<void> {
  const form = new FormData();
  form.append('original_ref', JSON.stringify({ filename: name, type: 'input' }));
  form.append('image', new Blob([Buffer.from(await sharp(WHITE_PIXEL).png().toBuffer())]), 'm.png');
  const answer = await fetch(`${server.url}/upload/mask`, { method: 'POST', body: form });
  expect([200, 400]).toContain(answer.status);
  await answer.arrayBuffer();
}

const WHITE_PIXEL = { create: { width: 1, height: 1, channels: 4, background: '#fff' } } as const;

/** The processor time of the thread with the event loop, in milliseconds. */
function mainThreadMs(): number {
  const stat = readFileSync(`/proc/${server.pid}/task/${server.pid}/stat`, 'utf8');
  const [user = 0, system = 0] = stat.split(') ')[1]!.split(' ').slice(11, 13).map(Number);
  return (user + system) * 10;
}

test.each([
  ['a bitmap of 1 KB', () => view('bitmap.bmp&preview=jpeg;50')],
  ['a mask on a PNG of many chunks', () => uploadMask('chunks.png')],
])('the thread that answers does not draw %s', async (_, draw) => {
  const beforeMs = mainThreadMs();
  await draw();
  expect(mainThreadMs() - beforeMs).toBeLessThan(MAX_MAIN_THREAD_MS);
});
