import { fitted, fittedMask } from '../resample/resample.ts';
import type { ImageValue, InputSpec, MaskValue, NodeContext, NodeDef } from '../node.ts';
import { fillAlpha, newImage, newMask } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

const BATCH = { pythonModule: 'comfy_extras.nodes_post_processing', style: 'v3' } as const;

/** How v1 brings the later ones to the size of the first. */
const TO_FIRST = { method: 'bilinear', crop: 'center' } as const;

/** An input that grows to 50 pictures or masks. */
const severalOf = <const Input extends { readonly [name: string]: InputSpec }>(
  prefix: string,
  required: Input,
) => ['COMFY_AUTOGROW_V3', { template: { input: { required }, prefix, min: 1, max: 50 } }] as const;

/** The nodes that put several pictures or masks into one batch. */
export const BATCH_NODES: readonly NodeDef[] = [
  typedNode({
    ...BATCH,
    name: 'BatchImagesNode',
    displayName: 'Batch Images',
    category: 'image/batch',
    required: { images: severalOf('image', { image: ['IMAGE', {}] }) },
    outputs: [{ type: 'IMAGE' }],
    run: ({ images }, context) => ({ outputs: [batchOf(context, Object.values(images))] }),
  }),
  typedNode({
    ...BATCH,
    name: 'BatchMasksNode',
    displayName: 'Batch Masks',
    category: 'image/mask',
    required: { masks: severalOf('mask', { mask: ['MASK', {}] }) },
    outputs: [{ type: 'MASK' }],
    run: ({ masks }, context) => ({ outputs: [maskBatchOf(context, Object.values(masks))] }),
  }),
];

/** Puts pictures into one batch, with the channels of all and the size of the first. */
export function batchOf(context: NodeContext, images: readonly ImageValue[]): ImageValue {
  const channels = Math.max(...images.map((image) => image.channels));
  const filled = images.map((image) => fillAlpha(context, image, channels));
  const [first, ...others] = filled as [ImageValue, ...ImageValue[]];
  const all = [first, ...others.map((image) => fitted(context, image, first, TO_FIRST))];
  const joined = newImage(context, { ...first, batch: total(all) });
  fill(joined, all);
  return joined;
}

function maskBatchOf(context: NodeContext, masks: readonly MaskValue[]): MaskValue {
  const [first, ...others] = masks as readonly [MaskValue, ...MaskValue[]];
  const all = [first, ...others.map((mask) => fittedMask(context, mask, first, TO_FIRST))];
  const joined = newMask(context, { ...first, batch: total(all) });
  fill(joined, all);
  return joined;
}

type Tensor = ImageValue | MaskValue;

function total(all: readonly Tensor[]): number {
  return all.reduce((sum, { batch }) => sum + batch, 0);
}

function fill(joined: Tensor, parts: readonly Tensor[]): void {
  let offset = 0;
  for (const { data } of parts) {
    joined.data.set(data, offset);
    offset += data.length;
  }
}
