import type { Caller } from '../protocol/job-api.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import { requirePrintable, sendJson } from '../dialects/errors.ts';
import { type V1Request, routesFor } from './routes.ts';
import { NODE_REPLACEMENTS } from '../translate/node-replacements.ts';
import { freemem } from 'node:os';
import { totalMemoryBytes } from '../lib/memory.ts';

/** The answers to a front end that asks about the server when it starts. */
export type ServerInfoOptions = {
  /** The same flags that the WebSocket sends. */
  readonly features: JsonObject;
  /** The version of Holdover, from package.json. */
  readonly version: string;
  /** The scripts of the mounted front end, if there is one. */
  readonly extensions?: (() => Promise<readonly string[]>) | undefined;
  /** The names of example workflows by pack, if a front end is mounted. */
  readonly workflowTemplates?: ((caller: Caller) => Promise<Json>) | undefined;
};

/** Routes a front end calls at its start: what the server is, can and contains. */
export const serverInfoRoutes = routesFor<ServerInfoOptions>({
  'GET /features': ({ features }, { ctx }) => sendJson(ctx, features),
  'GET /system_stats': ({ version }, { ctx }) => sendJson(ctx, systemStats(version)),
  'GET /extensions': async ({ extensions }, { ctx }) => sendJson(ctx, (await extensions?.()) ?? []),
  'GET /workflow_templates': async ({ workflowTemplates }, { ctx, caller }) =>
    sendJson(ctx, (await workflowTemplates?.(caller)) ?? {}),
  /** Hosted front ends ask if the account may be used. */
  'GET /api/user': (_, { ctx, caller }) => sendJson(ctx, { id: caller.user, status: 'active' }),
  // Constant answers: there are no custom node packs that could add anything.
  'GET /embeddings': (_, { ctx }) => sendJson(ctx, []),
  'GET /i18n': sendEmptyObject,
  'GET /global_subgraphs': sendEmptyObject,
  /** v1 answers `null` for an id without a blueprint. */
  'GET /global_subgraphs/:id': (_, { ctx, params: { id = '' } }) => {
    requirePrintable(id, 'id');
    sendJson(ctx, null);
  },
  'GET /node_replacements': (_, { ctx }) => sendJson(ctx, NODE_REPLACEMENTS),
  // Paths of this machine are not shown to clients.
  'GET /internal/folder_paths': sendEmptyObject,
});

function sendEmptyObject(_: unknown, { ctx }: V1Request): void {
  sendJson(ctx, {});
}

/**
 * The version of the v1 server that Holdover behaves like. Clients read it as numbers between dots.
 */
const V1_VERSION = '0.33.0';
/** The versions of the packages that v1 requires. None of them is installed here. */
const V1_PACKAGES = {
  'comfyui-frontend-package': '1.49.6',
  'comfyui-workflow-templates': '0.11.44',
} as const;

const PACKAGE_VERSIONS: Json = Object.entries(V1_PACKAGES).map(([name, required]) => ({
  name,
  installed: null,
  required,
}));

/**
 * Returns `/system_stats`: facts about this process in v1's fields. There is neither Python nor a
 * graphics card here, but clients want a text for the first and numbers for the second. The command
 * line is left out, since it may hold a token.
 */
function systemStats(version: string): JsonObject {
  const total = totalMemoryBytes();
  const free = Math.min(freemem(), total);
  return {
    system: {
      os: process.platform,
      ram_total: total,
      ram_free: free,
      comfyui_version: V1_VERSION,
      // Clients in typed languages fail on a `null` here.
      required_frontend_version: V1_PACKAGES['comfyui-frontend-package'],
      installed_templates_version: null,
      required_templates_version: V1_PACKAGES['comfyui-workflow-templates'],
      comfy_package_versions: PACKAGE_VERSIONS,
      python_version: `n/a (Holdover ${version}, Node.js ${process.version})`,
      pytorch_version: 'n/a',
      embedded_python: false,
      deploy_environment: 'holdover',
      argv: ['holdover'],
    },
    devices: [
      {
        name: 'cpu',
        type: 'cpu',
        // v1 says `null` without a graphics card, but clients in typed languages need a number.
        index: 0,
        vram_total: total,
        vram_free: free,
        torch_vram_total: total,
        torch_vram_free: free,
      },
    ],
  };
}
