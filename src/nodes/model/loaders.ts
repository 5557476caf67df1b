import { combo } from '../combo.ts';
import type { DescribedNode } from '../node.ts';
import { described } from './described.ts';

/** The loaders, as a server without a model describes them. */
export const LOADERS: readonly DescribedNode[] = [
  described(
    ['CheckpointLoaderSimple', 'Load Checkpoint'],
    'model/loaders',
    ['MODEL', 'CLIP', 'VAE'],
    {
      ckpt_name: [[], {}],
    },
  ),
  described(['UNETLoader', 'Load Diffusion Model'], 'model/loaders', ['MODEL'], {
    unet_name: [[]],
    weight_dtype: [['default', 'fp8_e4m3fn', 'fp8_e4m3fn_fast', 'fp8_e5m2'], { advanced: true }],
  }),
  described(['VAELoader', 'Load VAE'], 'model/loaders', ['VAE'], { vae_name: [['pixel_space']] }),
  {
    ...described(['CLIPLoader', 'Load CLIP'], 'model/loaders', ['CLIP'], {
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
          'flux2',
          'ovis',
          'longcat_image',
          'cogvideox',
          'lens',
          'pixeldit',
          'ideogram4',
          'boogu',
          'krea2',
          'joyimage',
          'mage',
          'minimax',
        ],
      ],
    }),
    optional: { device: [['default', 'cpu'], { advanced: true }] },
  },
  {
    ...described(['DualCLIPLoader', 'Load CLIP (Dual)'], 'model/loaders', ['CLIP'], {
      clip_name1: [[]],
      clip_name2: [[]],
      type: [
        [
          'sdxl',
          'sd3',
          'flux',
          'hunyuan_video',
          'hidream',
          'hunyuan_image',
          'hunyuan_video_15',
          'kandinsky5',
          'kandinsky5_image',
          'ltxv',
          'newbie',
          'ace',
        ],
      ],
    }),
    optional: { device: [['default', 'cpu'], { advanced: true }] },
  },
  described(['LoraLoader', 'Load LoRA (Model and CLIP)'], 'model/loaders', ['MODEL', 'CLIP'], {
    model: ['MODEL', {}],
    clip: ['CLIP', {}],
    lora_name: [[], {}],
    strength_model: ['FLOAT', { default: 1, min: -100, max: 100, step: 0.01 }],
    strength_clip: ['FLOAT', { default: 1, min: -100, max: 100, step: 0.01 }],
  }),
  described(['LoraLoaderModelOnly', 'Load LoRA'], 'model/loaders', ['MODEL'], {
    model: ['MODEL'],
    lora_name: [[]],
    strength_model: ['FLOAT', { default: 1, min: -100, max: 100, step: 0.01 }],
  }),
  described(['ControlNetLoader', 'Load ControlNet Model'], 'model/loaders', ['CONTROL_NET'], {
    control_net_name: [[]],
  }),
  described(['CLIPVisionLoader', 'Load CLIP Vision'], 'model/loaders', ['CLIP_VISION'], {
    clip_name: [[]],
  }),
  described(['StyleModelLoader', 'Load Style Model'], 'model/loaders', ['STYLE_MODEL'], {
    style_model_name: [[]],
  }),
  described(
    ['UpscaleModelLoader', 'Load Upscale Model'],
    { category: 'model/loaders', pythonModule: 'comfy_extras.nodes_upscale_model', style: 'v3' },
    ['UPSCALE_MODEL'],
    { model_name: combo([]) },
  ),
];
