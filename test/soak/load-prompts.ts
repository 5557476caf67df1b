import { randomBytes } from 'node:crypto';
import sharp from 'sharp';
import type { Graph } from '../../src/protocol/v2.ts';
import { flat, growing, loading } from '../support/graphs/workflows.ts';

/** One prompt of the load, and what must come of it. */
export type LoadPrompt = {
  readonly index: number;
  /** Of its output files, and of no other prompt's. */
  readonly prefix: string;
  readonly graph: Graph;
  /** Its socket is sent some megabytes; the one that has slow readers beside it. */
  readonly isLoud?: boolean;
  /** A file its workflow reads, to be uploaded first. */
  readonly upload?: { readonly name: string; readonly bytes: Buffer };
  readonly end: 'execution_success' | 'execution_error';
};

const PICTURE = { small: 48, large: 512, loud: 800 } as const;

/** The first ones are loud at once: what a process will hold at most it has held by then. */
const OPENING = 10;

/** The mix: half are quick, the others stream previews, read an upload, or fail at a broken one. */
export async function loadPromptOf(index: number): Promise<LoadPrompt> {
  const prefix = `soak-${index}`;
  const plain = { index, prefix, end: 'execution_success' } as const;
  const turn = index % 20;
  if (turn === 10 || index < OPENING) return loudOne(plain, await noise(PICTURE.loud));
  if (turn === 19) return withUpload(plain, randomBytes(2000), 'execution_error');
  if (turn === 18) return withUpload(plain, await noise(PICTURE.large));
  if (turn >= 14) return withUpload(plain, await noise(PICTURE.small));
  if (turn > 10) return { ...plain, graph: growing({ seed: index, prefix }) };
  return { ...plain, graph: flat({ color: index, prefix }) };
}

function withUpload(
  loadPrompt: Omit<LoadPrompt, 'graph'>,
  bytes: Buffer,
  end: LoadPrompt['end'] = loadPrompt.end,
): LoadPrompt {
  const name = `${loadPrompt.prefix}.png`;
  return { ...loadPrompt, end, upload: { name, bytes }, graph: loading(name, loadPrompt.prefix) };
}

/** A picture that every socket must receive; then previews, for sockets with room. */
function loudOne(loadPrompt: Omit<LoadPrompt, 'graph'>, bytes: Buffer): LoadPrompt {
  const { prefix, index } = loadPrompt;
  const shown = {
    '30': { class_type: 'LoadImage', inputs: { image: `${prefix}.png` } },
    '31': { class_type: 'SaveImageWebsocket', inputs: { images: ['30', 0] } },
  } as unknown as Graph;
  const graph = { ...shown, ...growing({ seed: index, side: 128, prefix }) };
  return { ...loadPrompt, graph, isLoud: true, upload: { name: `${prefix}.png`, bytes } };
}

function noise(side: number): Promise<Buffer> {
  const raw = { width: side, height: side, channels: 3 } as const;
  return sharp(randomBytes(side * side * 3), { raw })
    .png({ compressionLevel: 0 })
    .toBuffer();
}
