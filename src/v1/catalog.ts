import type { FileStore } from '../ledger/ledger.ts';
import { type Json, type JsonObject, isJsonObject } from '../wire/json.ts';
import type { ObjectInfo } from '../wire/v1.ts';
import { readJson } from './body.ts';
import { V1Error, plainError, sendEmpty, sendJson, sendText } from './errors.ts';
import { sendJsonText } from './json-text.ts';
import { type UserObjectInfo, createUserObjectInfo } from './object-info.ts';
import type { V1Request, V1Route } from './routes.ts';
import { withinRoot } from './safe-name.ts';
import { type SettingDeps, settingRoutes } from './settings.ts';
import { systemStats } from './stats.ts';

/** What the catalogue needs of the house. */
export type CatalogDeps = SettingDeps & {
  /** The same object for as long as nothing changed. */
  readonly objectInfo: () => Promise<ObjectInfo>;
  readonly files: Pick<FileStore, 'list'>;
  /** What the WebSocket negotiates as well. */
  readonly features: JsonObject;
  readonly version: string;
};

/** v1's model folders, in its order; all of them are empty here. */
const MODEL_FOLDERS = [
  'checkpoints',
  'configs',
  'loras',
  'vae',
  'text_encoders',
  'diffusion_models',
  'clip_vision',
  'style_models',
  'embeddings',
  'diffusers',
  'vae_approx',
  'controlnet',
  'gligen',
  'upscale_models',
  'custom_nodes',
  'hypernetworks',
  'photomaker',
  'classifiers',
  'model_patches',
  'audio_encoders',
];

const NOT_MODELS = new Set(['configs', 'custom_nodes']);
const EXPERIMENT_FOLDERS = MODEL_FOLDERS.filter((name) => !NOT_MODELS.has(name));

/** What a front end asks for at its start and has the same answer every time. */
const CONSTANTS: { readonly [path: string]: Json } = {
  '/embeddings': [],
  '/extensions': [],
  '/models': MODEL_FOLDERS,
  /** The hosted form: paths of this machine are nobody's business. */
  '/experiment/models': EXPERIMENT_FOLDERS.map((name) => ({ name, folders: [name] })),
  '/users': { storage: 'server', migrated: true },
  '/i18n': {},
  '/workflow_templates': {},
  '/global_subgraphs': {},
  '/node_replacements': {},
  '/v2/userdata': [],
  '/internal/folder_paths': {},
  /** v1 sends its log as one JSON string. */
  '/internal/logs': '',
  '/internal/logs/raw': { entries: [], size: { cols: 80, rows: 24 } },
};

/** What the old API tells about the server: node classes, models, features, facts, settings. */
export function catalogRoutes(deps: CatalogDeps): readonly V1Route[] {
  const info = createUserObjectInfo(deps);
  return [
    { method: 'GET', path: '/object_info', handle: (request) => sendAll(info, request) },
    { method: 'GET', path: '/object_info/:name', handle: (request) => sendOne(info, request) },
    { method: 'GET', path: '/features', handle: ({ ctx }) => sendJson(ctx, deps.features) },
    {
      method: 'GET',
      path: '/system_stats',
      handle: ({ ctx }) => sendJson(ctx, systemStats(deps.version)),
    },
    { method: 'GET', path: '/models/:folder', handle: listModels(MODEL_FOLDERS) },
    { method: 'GET', path: '/experiment/models/:folder', handle: listModels(EXPERIMENT_FOLDERS) },
    {
      method: 'PATCH',
      path: '/internal/logs/subscribe',
      handle: (request) => subscribeLogs(deps, request),
    },
    { method: 'GET', path: '/userdata', handle: listUserData },
    { method: 'GET', path: '/userdata/:file', handle: readUserData },
    ...settingRoutes(deps),
    ...Object.entries(CONSTANTS).map(([path, body]) => constant(path, body)),
  ];
}

function constant(path: string, body: Json): V1Route {
  return { method: 'GET', path, handle: ({ ctx }) => sendJson(ctx, body) };
}

async function sendAll(info: UserObjectInfo, { ctx, caller }: V1Request): Promise<void> {
  sendJsonText(ctx, await info.all(caller.user));
}

async function sendOne(info: UserObjectInfo, { ctx, caller, params }: V1Request): Promise<void> {
  sendJsonText(ctx, await info.one(caller.user, params['name'] ?? ''));
}

function listModels(folders: readonly string[]): V1Route['handle'] {
  return ({ ctx, params }) => {
    if (!folders.includes(params['folder'] ?? '')) throw new V1Error(404);
    sendJson(ctx, []);
  };
}

/** Taken and forgotten: there is no log to follow, and clients only want to hear 200. */
async function subscribeLogs({ maxBodyBytes }: CatalogDeps, { ctx }: V1Request): Promise<void> {
  const body = await readJson(ctx, maxBodyBytes);
  if (!isJsonObject(body) || !('clientId' in body) || !('enabled' in body)) {
    throw new V1Error(400, plainError('missing_key', 'clientId and enabled are both needed.'));
  }
  sendEmpty(ctx);
}

/** v1 speaks of a missing directory in words; there are none yet. */
function listUserData({ ctx, query }: V1Request): void {
  const dir = query.get('dir');
  if (dir === null || dir === '') return sendText(ctx, 400, 'Directory not provided');
  if (withinRoot(dir) === undefined) return sendText(ctx, 403, 'Invalid directory');
  sendText(ctx, 404, 'Directory not found');
}

function readUserData({ ctx, params }: V1Request): void {
  sendEmpty(ctx, withinRoot(params['file'] ?? '') === undefined ? 403 : 404);
}
