import type { InputSpec, NodeDef } from '../node.ts';
import { typedNode } from '../typed-node.ts';
import { crop } from './region.ts';
import { preview } from './save.ts';

const IMAGES = { pythonModule: 'comfy_extras.nodes_images', style: 'v3' } as const;

const place = (options: { readonly default: number; readonly min: number }) =>
  ['INT', { ...options, max: 16384 }] as const satisfies InputSpec;

/** The nodes for a region that a front end lets its user draw. */
export const CROP_NODES: readonly NodeDef[] = [
  typedNode({
    ...IMAGES,
    name: 'ImageCropV2',
    displayName: 'Crop Image',
    description: 'Cuts a region out of pictures.',
    category: 'image/transform',
    required: {
      image: ['IMAGE', {}],
      crop_region: [
        'BOUNDING_BOX',
        {
          default: { x: 0, y: 0, width: 512, height: 512 },
          socketless: true,
          component: 'ImageCrop',
        },
      ],
    },
    outputs: [{ type: 'IMAGE' }],
    hasIntermediateOutput: true,
    async run({ image, crop_region: region }, context) {
      const part = crop(context, image, region);
      return { outputs: [part], ui: { ...(await preview(part, context, [])), animated: [false] } };
    },
  }),
  typedNode({
    ...IMAGES,
    name: 'PrimitiveBoundingBox',
    displayName: 'Bounding Box',
    category: 'utilities/primitive',
    required: {
      x: place({ default: 0, min: 0 }),
      y: place({ default: 0, min: 0 }),
      width: place({ default: 512, min: 1 }),
      height: place({ default: 512, min: 1 }),
    },
    outputs: [{ type: 'BOUNDING_BOX' }],
    run: (region) => ({ outputs: [region] }),
  }),
];
