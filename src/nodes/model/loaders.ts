import type { DescribedNode } from '../node.ts';
import { described } from './described.ts';

/** The loaders, as a server without a model describes them. */
export const LOADERS: readonly DescribedNode[] = [
  described(['CheckpointLoaderSimple', 'Load Checkpoint'], 'loaders', ['MODEL', 'CLIP', 'VAE'], {
    ckpt_name: [[], {}],
  }),
  described(['UNETLoader', 'Load Diffusion Model'], 'advanced/loaders', ['MODEL'], {
    unet_name: [[]],
    weight_dtype: [['default', 'fp8_e4m3fn', 'fp8_e4m3fn_fast', 'fp8_e5m2']],
  }),
  described(['VAELoader', 'Load VAE'], 'loaders', ['VAE'], { vae_name: [['pixel_space']] }),
  {
    ...described(['CLIPLoader', 'Load CLIP'], 'advanced/loaders', ['CLIP'], {
      clip_name: [[]],
      type: [
        [
          'stable_diffusion',
          'stable_cascade',
          'sd3',
          'stable_audio',
          'mochi',
          'ltxv',
          'pixart',
          'cosmos',
          'lumina2',
          'wan',
          'hidream',
          'chroma',
          'ace',
          'omnigen2',
          'qwen_image',
          'hunyuan_image',
        ],
      ],
    }),
    optional: { device: [['default', 'cpu'], { advanced: true }] },
  },
  {
    ...described(['DualCLIPLoader'], 'advanced/loaders', ['CLIP'], {
      clip_name1: [[]],
      clip_name2: [[]],
      type: [['sdxl', 'sd3', 'flux', 'hunyuan_video', 'hidream', 'hunyuan_image']],
    }),
    optional: { device: [['default', 'cpu'], { advanced: true }] },
  },
  described(['LoraLoader', 'Load LoRA'], 'loaders', ['MODEL', 'CLIP'], {
    model: ['MODEL', {}],
    clip: ['CLIP', {}],
    lora_name: [[], {}],
    strength_model: ['FLOAT', { default: 1, min: -100, max: 100, step: 0.01 }],
    strength_clip: ['FLOAT', { default: 1, min: -100, max: 100, step: 0.01 }],
  }),
  described(['LoraLoaderModelOnly'], 'loaders', ['MODEL'], {
    model: ['MODEL'],
    lora_name: [[]],
    strength_model: ['FLOAT', { default: 1, min: -100, max: 100, step: 0.01 }],
  }),
  described(['ControlNetLoader', 'Load ControlNet Model'], 'loaders', ['CONTROL_NET'], {
    control_net_name: [[]],
  }),
  described(['CLIPVisionLoader', 'Load CLIP Vision'], 'loaders', ['CLIP_VISION'], {
    clip_name: [[]],
  }),
  described(['StyleModelLoader', 'Load Style Model'], 'loaders', ['STYLE_MODEL'], {
    style_model_name: [[]],
  }),
  described(
    ['UpscaleModelLoader', 'Load Upscale Model'],
    { category: 'loaders', pythonModule: 'comfy_extras.nodes_upscale_model', style: 'v3' },
    ['UPSCALE_MODEL'],
    { model_name: ['COMBO', { multiselect: false, options: [] }] },
  ),
];
