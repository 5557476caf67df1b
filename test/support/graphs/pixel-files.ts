import sharp from 'sharp';
import type { NodeDef } from '../../../src/nodes/node.ts';
import { frameOf, fromBytes, newImage, newMask, toBytes } from '../../../src/nodes/tensor.ts';
import { typedNode } from '../../../src/nodes/typed-node.ts';

const bare = {
  displayName: null,
  description: '',
  category: '',
  pythonModule: 'nodes',
  style: 'legacy' as const,
};

const decode = async (bytes: Uint8Array) => {
  const { data, info } = await sharp(bytes, { animated: true })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const height = info.pageHeight ?? info.height;
  return { data, width: info.width, height, batch: info.height / height, channels: info.channels };
};

const load = typedNode({
  ...bare,
  name: 'LoadImage',
  required: { image: ['STRING'] },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  run: async ({ image: name }, context) => {
    const { data, width, height, batch, channels } = await decode(await context.readFile(name));
    const image = newImage(context, { batch, height, width, channels: 3 });
    const hasAlpha = channels === 4 || channels === 2;
    const mask = newMask(
      context,
      hasAlpha ? { batch, height, width } : { batch: 1, height: 64, width: 64 },
    );
    for (let i = 0; i < batch * height * width; i++) {
      for (let c = 0; c < 3; c++)
        image.data[i * 3 + c] = (data[i * channels + (channels < 3 ? 0 : c)] as number) / 255;
      if (hasAlpha)
        mask.data[i] = 1 - Math.fround((data[i * channels + channels - 1] as number) / 255);
    }
    return { outputs: [image, mask] };
  },
});

const loadMask = typedNode({
  ...bare,
  name: 'LoadImageMask',
  required: { image: ['STRING'], channel: ['STRING'] },
  outputs: [{ type: 'MASK' }],
  run: async ({ image: name, channel: word }, context) => {
    const { data, width, height, channels } = await decode(await context.readFile(name));
    const channel = ['red', 'green', 'blue', 'alpha'].indexOf(word);
    const mask = newMask(context, { batch: 1, height, width });
    const bytes = new Uint8Array(height * width);
    for (let i = 0; i < bytes.length; i++)
      bytes[i] = data[i * channels + Math.min(channel, channels - 1)] as number;
    fromBytes(bytes, frameOf(mask, 0));
    return { outputs: [mask] };
  },
});

const save = typedNode({
  ...bare,
  name: 'SaveImage',
  required: { images: ['IMAGE'] },
  outputs: [],
  outputNode: true,
  run: async ({ images }, context) => {
    const { width, height, channels } = images;
    for (let i = 0; i < images.batch; i++) {
      const raw = { width, height, channels: channels as 1 | 2 | 3 | 4 };
      const bytes = await sharp(toBytes(images, i), { raw }).png().toBuffer();
      await context.save({
        bytes,
        name: `${i}.png`,
        subfolder: '',
        contentType: 'image/png',
        temp: false,
      });
    }
    return { outputs: [] };
  },
});

/** Tiny stand-ins for the loading and saving nodes, so that pixel nodes can be tested without them. */
export const STAND_INS: readonly NodeDef[] = [load, loadMask, save];
