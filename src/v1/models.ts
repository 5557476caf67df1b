import type { DefinitionSource } from '../definitions/definitions.ts';
import type { Caller } from '../protocol/job-api.ts';
import { comboOptions } from '../protocol/v1.ts';
import type { Json } from '../protocol/json.ts';
import { rulesFor } from '../dialects/dialect.ts';
import { emptyError, sendJson } from '../dialects/errors.ts';
import { type V1Request, routesFor } from './routes.ts';

/** The source of the names of models. */
export type ModelServices = { readonly definitions: DefinitionSource };

/** v1's model folders in its order, and the node input that offers a folder's files by name. */
const MODEL_FOLDERS: { readonly [folder: string]: readonly [string, string] | undefined } = {
  checkpoints: ['CheckpointLoaderSimple', 'ckpt_name'],
  configs: ['CheckpointLoader', 'config_name'],
  loras: ['LoraLoader', 'lora_name'],
  vae: ['VAELoader', 'vae_name'],
  text_encoders: ['CLIPLoader', 'clip_name'],
  diffusion_models: ['UNETLoader', 'unet_name'],
  clip_vision: ['CLIPVisionLoader', 'clip_name'],
  style_models: ['StyleModelLoader', 'style_model_name'],
  embeddings: undefined,
  diffusers: ['DiffusersLoader', 'model_path'],
  vae_approx: undefined,
  controlnet: ['ControlNetLoader', 'control_net_name'],
  gligen: ['GLIGENLoader', 'gligen_name'],
  upscale_models: ['UpscaleModelLoader', 'model_name'],
  latent_upscale_models: ['LatentUpscaleModelLoader', 'model_name'],
  custom_nodes: undefined,
  datasets: undefined,
  hypernetworks: ['HypernetworkLoader', 'hypernetwork_name'],
  photomaker: ['PhotoMakerLoader', 'photomaker_model_name'],
  classifiers: undefined,
  model_patches: ['ModelPatchLoader', 'name'],
  audio_encoders: ['AudioEncoderLoader', 'audio_encoder_name'],
  background_removal: ['LoadBackgroundRemovalModel', 'bg_removal_name'],
  frame_interpolation: ['FrameInterpolationModelLoader', 'model_name'],
  geometry_estimation: ['LoadMoGeModel', 'model_name'],
  optical_flow: ['OpticalFlowLoader', 'model_name'],
  detection: ['LoadMediaPipeFaceLandmarker', 'model_name'],
};

const MODEL_FILES = ['.bin', '.ckpt', '.pkl', '.pt', '.pt2', '.pth', '.safetensors', '.sft'];
/** The folders whose files have other extensions. */
const OTHER_EXTENSIONS: { readonly [folder: string]: readonly string[] | undefined } = {
  diffusers: ['folder'],
  datasets: [],
  classifiers: [''],
};

const FOLDER_NAMES = Object.keys(MODEL_FOLDERS);
const NOT_MODELS = new Set(['configs', 'custom_nodes']);
const EXPERIMENT_FOLDERS = FOLDER_NAMES.filter((name) => !NOT_MODELS.has(name));

/** Lists of models, read from the node definitions: the files themselves are at the upstream. */
export const modelRoutes = routesFor<ModelServices>({
  'GET /models': (_, { ctx }) => sendJson(ctx, FOLDER_NAMES),
  async 'GET /models/:folder'(services, { ctx, caller, params }) {
    sendJson(ctx, await modelFilesIn(services, caller, folderOf(FOLDER_NAMES, params)));
  },
  'GET /experiment/models': (_, { ctx }) => sendJson(ctx, HOSTED_FOLDERS),
  /** Lists the files without sizes and times, which are known only where the files are. */
  async 'GET /experiment/models/:folder'(services, { ctx, caller, params }) {
    const files = await modelFilesIn(services, caller, folderOf(EXPERIMENT_FOLDERS, params));
    if (files.length === 0 && rulesFor(ctx).emptyModelFolder === 'not-found') {
      throw emptyError(404, 'There is no model in this folder.');
    }
    sendJson(
      ctx,
      files.map((name) => ({ name, pathIndex: 0 })),
    );
  },
});

/** The folders in the form of the hosted API. Paths of this machine are not shown. */
const HOSTED_FOLDERS: Json = EXPERIMENT_FOLDERS.map((name) => ({
  name,
  folders: [name],
  extensions: OTHER_EXTENSIONS[name] ?? MODEL_FILES,
}));

function folderOf(folders: readonly string[], { folder = '' }: V1Request['params']): string {
  if (!folders.includes(folder)) throw emptyError(404, 'There is no such folder.');
  return folder;
}

async function modelFilesIn(
  { definitions }: ModelServices,
  caller: Caller,
  folder: string,
): Promise<readonly string[]> {
  const [className, input] = MODEL_FOLDERS[folder] ?? [];
  if (className === undefined || input === undefined) return [];
  const info = await definitions.info(caller);
  const offered = comboOptions(info[className]?.input['required']?.[input]) ?? [];
  const choices = offered.filter((name) => typeof name === 'string');
  // Some loaders offer built-in choices beside the files.
  return folder === 'diffusers' ? choices : choices.filter((name) => /\.\w+$/.test(name));
}
