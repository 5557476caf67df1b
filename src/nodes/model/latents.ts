import type { DescribedNode } from '../node.ts';
import { described } from './described.ts';

/** The nodes between the loaders and the samplers of a graph. */
export const LATENTS: readonly DescribedNode[] = [
  described(
    ['CLIPTextEncode', 'CLIP Text Encode (Prompt)'],
    'model/conditioning',
    ['CONDITIONING'],
    {
      text: ['STRING', { multiline: true, dynamicPrompts: true }],
      clip: ['CLIP', {}],
    },
  ),
  described(['CLIPSetLastLayer', 'CLIP Set Last Layer'], 'model/conditioning', ['CLIP'], {
    clip: ['CLIP'],
    stop_at_clip_layer: ['INT', { default: -1, min: -24, max: -1, step: 1, advanced: true }],
  }),
  described(['EmptyLatentImage', 'Empty Latent Image'], 'model/latent', ['LATENT'], {
    width: ['INT', { default: 512, min: 16, max: 16384, step: 8 }],
    height: ['INT', { default: 512, min: 16, max: 16384, step: 8 }],
    batch_size: ['INT', { default: 1, min: 1, max: 4096 }],
  }),
  described(
    ['EmptySD3LatentImage'],
    {
      category: 'model/latent/stable diffusion',
      pythonModule: 'comfy_extras.nodes_sd3',
      style: 'v3',
    },
    ['LATENT'],
    {
      width: ['INT', { default: 1024, min: 16, max: 16384, step: 16 }],
      height: ['INT', { default: 1024, min: 16, max: 16384, step: 16 }],
      batch_size: ['INT', { default: 1, min: 1, max: 4096 }],
    },
  ),
  described(['VAEDecode', 'VAE Decode'], 'model/latent', ['IMAGE'], {
    samples: ['LATENT', {}],
    vae: ['VAE', {}],
  }),
  described(['VAEEncode', 'VAE Encode'], 'model/latent', ['LATENT'], {
    pixels: ['IMAGE'],
    vae: ['VAE'],
  }),
  described(['VAEEncodeForInpaint', 'VAE Encode (for Inpainting)'], 'model/latent', ['LATENT'], {
    pixels: ['IMAGE'],
    vae: ['VAE'],
    mask: ['MASK'],
    grow_mask_by: ['INT', { default: 6, min: 0, max: 64, step: 1 }],
  }),
  described(['LatentUpscale', 'Upscale Latent'], 'model/latent', ['LATENT'], {
    samples: ['LATENT'],
    upscale_method: [['nearest-exact', 'bilinear', 'area', 'bicubic', 'bislerp']],
    width: ['INT', { default: 512, min: 0, max: 16384, step: 8 }],
    height: ['INT', { default: 512, min: 0, max: 16384, step: 8 }],
    crop: [['disabled', 'center']],
  }),
  described(
    ['ImageUpscaleWithModel', 'Upscale Image (using Model)'],
    { category: 'image/upscaling', pythonModule: 'comfy_extras.nodes_upscale_model', style: 'v3' },
    ['IMAGE'],
    { upscale_model: ['UPSCALE_MODEL', {}], image: ['IMAGE', {}] },
  ),
  {
    ...described(
      ['ControlNetApplyAdvanced', 'Apply ControlNet'],
      'model/conditioning/controlnet',
      ['CONDITIONING'],
      {
        positive: ['CONDITIONING'],
        negative: ['CONDITIONING'],
        control_net: ['CONTROL_NET'],
        image: ['IMAGE'],
        strength: ['FLOAT', { default: 1, min: 0, max: 10, step: 0.01 }],
        start_percent: ['FLOAT', { default: 0, min: 0, max: 1, step: 0.001 }],
        end_percent: ['FLOAT', { default: 1, min: 0, max: 1, step: 0.001 }],
      },
    ),
    optional: { vae: ['VAE'] },
    outputs: [
      { type: 'CONDITIONING', name: 'positive' },
      { type: 'CONDITIONING', name: 'negative' },
    ],
  },
  described(
    ['FluxGuidance'],
    {
      category: 'model/conditioning/flux',
      pythonModule: 'comfy_extras.nodes_flux',
      style: 'v3',
    },
    ['CONDITIONING'],
    {
      conditioning: ['CONDITIONING', {}],
      guidance: ['FLOAT', { default: 3.5, min: 0, max: 100, step: 0.1 }],
    },
  ),
];
