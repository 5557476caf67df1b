import type { Caller } from '../protocol/job-api.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import { sendJson } from '../dialects/errors.ts';
import type { V1Route } from './routes.ts';
import { systemStats } from './system-stats.ts';

/** The answers to a front end that asks about the server when it starts. */
export type ServerInfoOptions = {
  /** The same flags that the WebSocket sends. */
  readonly features: JsonObject;
  readonly version: string;
  /** Scripts of the mounted front end, if there is one. */
  readonly extensions?: (() => Promise<readonly string[]>) | undefined;
  /** Names of example workflows by pack, if a front end is mounted. */
  readonly workflowTemplates?: ((caller: Caller) => Promise<Json>) | undefined;
};

/** Routes with a constant answer: there are no packs that could add anything. */
const FIXED_ANSWERS = {
  '/embeddings': [],
  '/i18n': {},
  '/global_subgraphs': {},
  '/node_replacements': {},
  /** Paths of this machine are not shown to clients. */
  '/internal/folder_paths': {},
} as const satisfies { readonly [path: string]: Json };

/** Routes a front end calls at its start: what the server is, can and contains. */
export function serverInfoRoutes(options: ServerInfoOptions): readonly V1Route[] {
  return [
    { method: 'GET', path: '/features', handle: ({ ctx }) => sendJson(ctx, options.features) },
    {
      method: 'GET',
      path: '/system_stats',
      handle: ({ ctx }) => sendJson(ctx, systemStats(options.version)),
    },
    {
      method: 'GET',
      path: '/extensions',
      handle: async ({ ctx }) => sendJson(ctx, (await options.extensions?.()) ?? []),
    },
    {
      method: 'GET',
      path: '/workflow_templates',
      handle: async ({ ctx, caller }) =>
        sendJson(ctx, (await options.workflowTemplates?.(caller)) ?? {}),
    },
    /** Hosted front ends ask whether the account may be used. */
    {
      method: 'GET',
      path: '/api/user',
      handle: ({ ctx, caller }) => sendJson(ctx, { id: caller.user, status: 'active' }),
    },
    ...(Object.keys(FIXED_ANSWERS) as (keyof typeof FIXED_ANSWERS)[]).map(fixedAnswer),
  ];
}

function fixedAnswer(path: keyof typeof FIXED_ANSWERS): V1Route {
  return { method: 'GET', path, handle: ({ ctx }) => sendJson(ctx, FIXED_ANSWERS[path]) };
}
