import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { WebSocket } from 'ws';
import type { Bench } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { type Sample, interleave, ratioRow } from './measure.ts';
import { type Program, startOurs } from './program.ts';

const SIDE = 1024;
const SCALED = { width: 768, height: 768 } as const;
const PICTURE = fileURLToPath(
  new URL('../../../../fixtures/demo/evening-hills.jpg', import.meta.url),
);

/** A picture of a megapixel loaded, scaled and saved by a job, against the same calls on sharp. */
export const engine: Bench = {
  name: 'engine',
  needs: [],
  async run({ workDir, rounds, keep }) {
    const file = join(workDir, 'picture.png');
    await sharp(PICTURE).resize(SIDE, SIDE, { fit: 'cover' }).png().toFile(file);
    const holdover = await keep(startHoldover({ workDir }));
    const bare = await keep(startOurs('sharp-calls', { side: 'subject', args: [file, workDir] }));
    await uploadPicture(holdover, file);
    const socket = new WebSocket(`${holdover.url.replace('http', 'ws')}/ws?clientId=bench`);
    await once(socket, 'open');
    let runs = 0;
    const contestants = {
      holdover: () => run(holdover, socket, runs++),
      sharp: () => calls(bare),
    };
    try {
      for (let i = 0; i < 3; i++) await interleave(1, contestants);
      const samples = await interleave(Math.max(rounds, 9), contestants);
      return [
        ratioRow({
          bench: 'engine',
          figure: 'LoadImage → ImageScale → SaveImage, 1 MP',
          unit: 'ms',
          samples: samples.holdover,
          against: { name: 'the same calls on sharp', samples: samples.sharp },
          target: { kind: 'at most', ratio: 1.2 },
          cpuUnit: 'ms/job',
        }),
      ];
    } finally {
      socket.terminate();
    }
  },
};

async function uploadPicture({ url }: Program, file: string): Promise<void> {
  const form = new FormData();
  form.set('image', new Blob([readFileSync(file)]), 'picture.png');
  const answer = await fetch(`${url}/upload/image`, { method: 'POST', body: form });
  if (!answer.ok) throw new Error(`the upload was answered with ${answer.status}`);
}

/** From the `POST` to v1's last word; nothing is cached, the prompts differ in their first node. */
async function run(holdover: Program, socket: WebSocket, count: number): Promise<Sample> {
  const cpuBefore = holdover.cpuNs();
  const startedAt = performance.now();
  const over = lastWord(socket);
  const graph = {
    '1': { class_type: 'LoadImage', inputs: { image: 'picture.png', bench: count } },
    '2': {
      class_type: 'ImageScale',
      inputs: { image: ['1', 0], upscale_method: 'lanczos', ...SCALED, crop: 'disabled' },
    },
    '9': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'bench' } },
  };
  const body = JSON.stringify({ client_id: 'bench', prompt: graph });
  const answer = await fetch(`${holdover.url}/prompt`, { method: 'POST', body });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.arrayBuffer();
  const cached = await over;
  if (cached) throw new Error('a node was cached');
  const value = performance.now() - startedAt;
  return { value, cpuUs: (holdover.cpuNs() - cpuBefore) / 1e6 };
}

/** Resolves at the end of a run; true when something of it was cached. */
function lastWord(socket: WebSocket): Promise<boolean> {
  let cached = false;
  return new Promise((resolve) => {
    socket.on('message', function hear(data: Buffer, isBinary: boolean) {
      if (isBinary) return;
      const { type, data: told } = JSON.parse(data.toString());
      if (type === 'execution_cached') cached = told.nodes.length > 0;
      if (type !== 'executing' || told.node !== null) return;
      socket.off('message', hear);
      resolve(cached);
    });
  });
}

async function calls(bare: Program): Promise<Sample> {
  const cpuBefore = bare.cpuNs();
  const { ms } = await bare.ask<{ readonly ms: number }>(SCALED);
  return { value: ms, cpuUs: (bare.cpuNs() - cpuBefore) / 1e6 };
}
