// Load, scale and save as one would write it with sharp alone.
import { join } from 'node:path';
import sharp from 'sharp';
import { answer, ready } from './serve.ts';

const [file = '', dir = ''] = process.argv.slice(2);
let saved = 0;

answer(async ({ width, height }: { readonly width: number; readonly height: number }) => {
  const startedAt = performance.now();
  await sharp(file)
    .removeAlpha()
    .resize(width, height, { fit: 'fill', kernel: 'lanczos3' })
    .png({ compressionLevel: 4, adaptiveFiltering: true })
    .toFile(join(dir, `saved-${saved++}.png`));
  return { ms: performance.now() - startedAt };
});
ready();
