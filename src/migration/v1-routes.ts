/** The v2 replacement of a v1 call. */
export type Successor = {
  /** The v2 call, or `null` when there is none. */
  readonly call: string | null;
  /**
   * The path of the v2 call for a given v1 call, if the v1 address determines it. Its parameter is that of the v1
   * route.
   */
  readonly link?: string;
  /** `same`: it does the same as v1; `changes`: the client must work differently; `none`: v2 has no replacement. */
  readonly fit: 'same' | 'changes' | 'none';
  /** The feature that v2 lacks. */
  readonly lacks?: string;
};

const JOBS = '/api/v2/jobs';
const ASSETS = '/api/v2/assets';

const submit = {
  call: 'POST /api/v2/jobs',
  link: JOBS,
  fit: 'same',
  lacks: 'an id of your own, a place in the queue (number, front), a choice of outputs to run',
} as const;
const job = { call: 'GET /api/v2/jobs/{id}', link: `${JOBS}/:id`, fit: 'same' } as const;
const record = {
  ...job,
  fit: 'changes',
  lacks:
    'a record that stays: jobs expire, and tell of no graph, no text that a node shows, no messages of single nodes',
} as const;
const listing = {
  call: 'GET /api/v2/jobs',
  link: JOBS,
  fit: 'changes',
  lacks: 'graphs and places in line; not every service lists jobs at all',
} as const;
const past = {
  ...listing,
  lacks: 'a list that stays: jobs expire, they name no graph, and not every service lists them',
} as const;
const cancel = { call: 'POST /api/v2/jobs/{id}/cancel', fit: 'same' } as const;
const cancelMany = {
  ...cancel,
  fit: 'changes',
  lacks: 'stopping what runs, or all at once: each job is cancelled by its id',
} as const;
const upload = {
  call: 'POST /api/v2/assets',
  link: ASSETS,
  fit: 'same',
  lacks: 'file names: workflows name an asset by its id',
} as const;
const none = (lacks: string) => ({ call: null, fit: 'none', lacks }) as const;
const definitions = none('node definitions');
const models = none('the names a loader can choose from');
const userData = none('saved workflows, and whatever else a front end keeps');
const settings = none('values kept for each key');
const users = none('accounts: a key is all there is');
const logs = none('lines of the server; GET /api/v2/jobs/{id}/logs has those of a job, where kept');
const frontEnd = none('what a browser front end asks at its start');
const labels = none('names, tags and metadata that change after the upload');
const assetScan = none('scans of folders: every file is recorded when it is made');
const forget = none('forgetting single records: they expire');

/** Every v1 route and its replacement. */
export const V1_ROUTES = {
  'POST /prompt': submit,
  'GET /prompt': { ...listing, lacks: 'the number of jobs left: it must be counted' },
  'GET /queue': listing,
  'POST /queue': cancelMany,
  'POST /interrupt': cancelMany,
  'POST /free': {
    call: null,
    fit: 'changes',
    lacks: 'unloading models: the service sees to its memory, the call can go',
  },
  'GET /ws': {
    call: 'GET /api/v2/jobs/{id}/events',
    fit: 'changes',
    lacks: 'node-level events (executing, executed, cached); one stream for each job',
  },
  'GET /history': past,
  'GET /history/:id': record,
  'POST /history': forget,
  'GET /api/history_v2': past,
  'GET /api/history_v2/:id': record,
  'GET /api/jobs': past,
  'GET /api/jobs/:id': record,
  'DELETE /api/jobs/:id': forget,
  'GET /api/job/:id/status': job,
  'POST /api/jobs/cancel': cancelMany,
  'POST /api/jobs/:id/cancel': { ...cancel, link: `${JOBS}/:id/cancel` },
  'POST /upload/image': upload,
  'POST /upload/mask': {
    ...upload,
    fit: 'changes',
    lacks: 'joining two pictures: the client does it before it sends one',
  },
  'GET /view': {
    call: 'GET /api/v2/assets/{id}/content',
    fit: 'same',
    lacks: 'file names and re-encoded previews: outputs of a job carry their own url',
  },
  'GET /api/assets': none('a list of all files: a job lists its own'),
  'POST /api/assets': { ...upload, lacks: 'names and metadata: a file has a path and tags' },
  'POST /api/assets/from-hash': {
    call: 'POST /api/v2/assets/from-hash',
    link: `${ASSETS}/from-hash`,
    fit: 'same',
  },
  'HEAD /api/assets/hash/:hash': {
    call: 'HEAD /api/v2/assets/by-hash/{hash}',
    link: `${ASSETS}/by-hash/:hash`,
    fit: 'same',
  },
  'GET /api/assets/:id': {
    call: 'GET /api/v2/assets/{id}',
    fit: 'changes',
    lacks: 'an id that stays when a file gets other bytes',
  },
  'GET /api/assets/:id/content': {
    call: 'GET /api/v2/assets/{id}/content',
    fit: 'changes',
    lacks: 'a name for what is sent',
  },
  'PUT /api/assets/:id': labels,
  'DELETE /api/assets/:id': {
    call: 'DELETE /api/v2/assets/{id}',
    fit: 'changes',
    lacks: 'removing an output before its job expires',
  },
  'POST /api/assets/:id/tags': labels,
  'DELETE /api/assets/:id/tags': labels,
  'GET /api/tags': labels,
  'GET /api/assets/tags/refine': labels,
  'POST /api/assets/seed': assetScan,
  'GET /api/assets/seed/status': assetScan,
  'POST /api/assets/seed/cancel': assetScan,
  'POST /api/assets/prune': assetScan,
  'GET /view_metadata/:folder': none('the header of a safetensors file'),
  'GET /internal/files/:type': none('names by folder, newest first'),
  'GET /object_info': definitions,
  'GET /object_info/:name': definitions,
  'GET /models': models,
  'GET /models/:folder': models,
  'GET /embeddings': models,
  'GET /experiment/models': models,
  'GET /experiment/models/:folder': models,
  'GET /system_stats': {
    call: 'GET /api/v2/health',
    link: '/api/v2/health',
    fit: 'changes',
    lacks: 'facts about the machine: health is all it tells',
  },
  'GET /features': frontEnd,
  'GET /extensions': frontEnd,
  'GET /i18n': frontEnd,
  'GET /workflow_templates': frontEnd,
  'GET /global_subgraphs': frontEnd,
  'GET /global_subgraphs/:id': frontEnd,
  'GET /node_replacements': frontEnd,
  'GET /internal/folder_paths': none('places on the machine'),
  'GET /api/user': users,
  'GET /users': users,
  'POST /users': users,
  'GET /settings': settings,
  'GET /settings/:id': settings,
  'POST /settings': settings,
  'POST /settings/:id': settings,
  'GET /userdata': userData,
  'GET /v2/userdata': userData,
  'GET /userdata/:file': userData,
  'POST /userdata/:file': userData,
  'DELETE /userdata/:file': userData,
  'POST /userdata/:file/move/:dest': userData,
  'GET /internal/logs': logs,
  'GET /internal/logs/raw': logs,
  'PATCH /internal/logs/subscribe': logs,
} as const satisfies { readonly [route: string]: Successor };

/** The method and path of a v1 route. `GET /x` also stands for `GET /api/x`. */
export type V1RouteName = keyof typeof V1_ROUTES;

/** Returns true when a text names a v1 route. Stored names may be those of an older or newer Holdover. */
export function isRouteName(name: string): name is V1RouteName {
  return Object.hasOwn(V1_ROUTES, name);
}

/** Returns the path of the v2 call for one v1 call; `undefined` when the v1 address does not determine it. */
export function successorLink(
  name: V1RouteName,
  params: { readonly [name: string]: string },
): string | undefined {
  const { link }: Successor = V1_ROUTES[name];
  return link?.replace(/:(\w+)/, (_, param: string) => encodeURIComponent(params[param] ?? ''));
}
