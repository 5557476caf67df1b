import type { IncomingHttpHeaders } from 'node:http';

/** The facts about an answered v1 call. */
export type CallFacts = {
  readonly method: string;
  /** The path without the prefix `/api`. */
  readonly path: string;
  readonly query: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** True when the call has the form of the hosted service. */
  readonly isHosted: boolean;
  readonly isRemote: boolean;
  /** Returns the beginning of the request's body. */
  readonly body: () => string;
};

/** The facts about a frame that was sent to a v1 client. */
export type FrameFacts = {
  readonly type: string;
  readonly text: string;
  readonly bytes: number;
  readonly isRemote: boolean;
};

/** Returns true for the calls and frames in which a difference is visible. */
export type Rule = {
  readonly call?: (facts: CallFacts) => boolean;
  readonly frame?: (facts: FrameFacts) => boolean;
};

/** Limits rules to calls and frames of one kind. */
function onlyWhere<Rules extends { readonly [row: string]: Rule }>(
  fits: (facts: { readonly isRemote: boolean; readonly isHosted?: boolean }) => boolean,
  rules: Rules,
): { readonly [Row in keyof Rules]: Rule } {
  const limited = Object.entries(rules).map(([row, { call, frame }]): [string, Rule] => [
    row,
    {
      ...(call && { call: (facts) => fits(facts) && call(facts) }),
      ...(frame && { frame: (facts) => fits(facts) && frame(facts) }),
    },
  ]);
  return Object.fromEntries(limited) as { readonly [Row in keyof Rules]: Rule };
}

const isPrompt = ({ method, path }: CallFacts): boolean => method === 'POST' && path === '/prompt';
const isUpload = ({ path }: CallFacts): boolean => path.startsWith('/upload/');
const isHistory = ({ path }: CallFacts): boolean => /^\/history(_v2)?(\/|$)/.test(path);
const isUserdata = ({ path }: CallFacts): boolean =>
  /^\/(userdata|settings|v2\/userdata)(\/|$)/.test(path);
const isObjectInfo = ({ path }: CallFacts): boolean => path.startsWith('/object_info');
const isJobs = ({ path }: CallFacts): boolean => /^\/jobs?(\/|$)/.test(path);
const isUnavailable = ({ status }: CallFacts): boolean =>
  status === 502 || status === 503 || status === 504;
const isAccepted = (facts: CallFacts): boolean => isPrompt(facts) && facts.status === 200;
const isRefused = (facts: CallFacts): boolean => isPrompt(facts) && facts.status === 400;
const hasOrder = ({ body }: CallFacts): boolean => /"(front|number)"/.test(body());
const isPreview = ({ type }: FrameFacts): boolean => type.startsWith('preview');
const isStep = ({ type }: FrameFacts): boolean => type === 'progress' || type === 'progress_state';
/** From this many begun nodes on, some `progress_state` messages are not sent. */
const MANY_NODES = 100;
/** The texts of longer frames are cut. */
const LONG_FRAME_BYTES = 900_000;

/** The rows of docs/differences.md that a call or a frame shows, and the calls and frames that show each. */
export const DIFFERENCE_RULES = {
  'no-client-id': { call: (facts) => isAccepted(facts) && !facts.body().includes('"client_id"') },
  'shared-ids': { call: ({ path }) => path === '/ws' },
  'late-sockets': { call: ({ path }) => path === '/ws' },
  'after-the-answer': { call: isAccepted },
  'cancelled-before-start': { frame: ({ type }) => type === 'execution_interrupted' },
  watchers: { call: ({ path, query }) => path === '/ws' && /(^|&)watch=1(&|$)/.test(query) },
  'sampler-previews': { frame: isPreview },
  keepalive: { call: ({ path }) => path === '/ws' },
  'no-deflate': {
    call: ({ path, headers }) =>
      path === '/ws' && headers['sec-websocket-extensions'] !== undefined,
  },
  'large-graphs': {
    frame: ({ type, text }) => type === 'progress_state' && Number.parseInt(text, 10) >= MANY_NODES,
  },
  'long-frames': { frame: ({ bytes }) => bytes >= LONG_FRAME_BYTES },
  'socket-limits': { call: ({ path, status }) => path === '/ws' && status >= 400 },
  'v2-jobs': { call: ({ path, method }) => path === '/queue' && method === 'GET' },
  users: { call: ({ path }) => path === '/users' },
  'parallel-prompts': { call: ({ path, method }) => path === '/queue' && method === 'GET' },
  'interrupt-inside': { call: ({ path }) => path === '/interrupt' },
  free: { call: ({ path }) => path === '/free' },
  'preview-names': {
    call: ({ path, query }) => path === '/view' && /(^|&)type=temp(&|$)/.test(query),
  },
  'identical-node-meta': { call: ({ path }) => /^\/history(_v2)?\/./.test(path) },
  'current-inputs': { frame: ({ type }) => type === 'execution_error' },
  wording: { call: isRefused, frame: ({ type }) => type === 'execution_error' },
  'host-paths': {
    call: ({ path }) => /^\/(experiment\/models|internal\/folder_paths)/.test(path),
    frame: ({ type }) => type === 'execution_error',
  },
  'unknown-class': { call: (facts) => isObjectInfo(facts) || isRefused(facts) },
  'text-limits': {
    frame: ({ type, text }) => type === 'execution_error' && /OutOfMemory/.test(text),
  },
  'picture-formats': { call: ({ path, query }) => path === '/view' && query.includes('preview=') },
  pixels: { call: ({ path, status }) => path === '/view' && status === 200 },
  restart: { call: (facts) => isHistory(facts) && facts.method === 'GET' },
  'history-size': { call: isHistory },
  'bad-input': {
    call: (facts) =>
      facts.status === 400 &&
      (facts.path === '/view' || (facts.method === 'POST' && !isUpload(facts))),
  },
  'upload-fields': { call: (facts) => isUpload(facts) && facts.status === 200 },
  'bad-upload': {
    call: (facts) => facts.path === '/upload/mask' || (facts.status === 400 && isUpload(facts)),
  },
  'unsafe-names': {
    call: (facts) => facts.status === 400 && (isUpload(facts) || isUserdata(facts)),
  },
  'duplicate-prompt-id': { call: (facts) => isRefused(facts) && /"prompt_id"/.test(facts.body()) },
  'extra-data-null': {
    call: (facts) => isPrompt(facts) && /"(extra_data|prompt_id)"\s*:\s*null/.test(facts.body()),
  },
  nan: {
    call: (facts) => isPrompt(facts) && /[:,[\s]-?(NaN|Infinity)[,}\]\s]/.test(facts.body()),
  },
  'control-characters': {
    call: ({ status, path, query }) => status === 400 && /%(0|1|7f)/i.test(path + query),
  },
  'id-limits': { call: (facts) => isPrompt(facts) && /"prompt_id"/.test(facts.body()) },
  secrets: {
    call: (facts) => isPrompt(facts) && /"(api_key|auth_token)_[a-z]+_org"/.test(facts.body()),
  },
  'body-limits': { call: ({ status }) => status === 413 || status === 415 },
  'queue-limits': { call: (facts) => isPrompt(facts) && facts.status === 503 },
  origin: { call: ({ status, headers }) => status === 403 && headers.origin !== undefined },
  cors: { call: ({ headers }) => headers.origin !== undefined },
  'active-types': {
    call: ({ path, query }) =>
      (path === '/view' || path.startsWith('/userdata/')) &&
      /\.(html?|m?js|css|xml|svg|pdf|mht(ml)?)(&|$)/i.test(`${path}&${query}`),
  },
  'signed-view': { call: ({ path, status }) => path === '/view' && status === 302 },
  'service-trouble': { call: isUnavailable },
  'newer-routes': {
    call: (facts) =>
      isJobs(facts) ||
      /^\/(history_v2|user|global_subgraphs|node_replacements)(\/|$)/.test(facts.path),
  },
  'start-page': {
    call: ({ path }) => /^\/((templates|workflow_templates|extensions)(\/|$)|$)/.test(path),
  },
  userdata: { call: isUserdata },
  'plain-folders': { call: ({ path }) => path.startsWith('/internal/files') },
  'system-stats': { call: ({ path }) => path === '/system_stats' },
  'head-limits': { call: ({ status }) => status === 431 },
  brownout: { call: ({ status }) => status === 503 },
  'display-name': { call: isObjectInfo },
  compression: {
    call: (facts) => isObjectInfo(facts) && facts.headers['accept-encoding'] !== undefined,
  },
  'static-files': { call: ({ path }) => path.startsWith('/assets/') || path === '/user.css' },
  logs: { call: ({ path }) => path.startsWith('/internal/logs') },
  models: { call: ({ path }) => /^\/(models|embeddings|experiment\/models)(\/|$)/.test(path) },
  ...onlyWhere(({ isRemote }) => isRemote, {
    'sparse-progress': { frame: isStep },
    'sparse-previews': { frame: isPreview },
    'remote-order': {
      call: (facts) => isAccepted(facts) && hasOrder(facts),
      frame: ({ type }) => type === 'execution_start',
    },
    'unknown-cache': { frame: ({ type }) => type === 'execution_cached' },
    'unlisted-results': { frame: ({ type }) => type === 'execution_success' },
    'remote-names': { frame: ({ type }) => type === 'executed' },
    'remote-errors': { frame: ({ type }) => type === 'execution_error' },
    'partial-node-errors': { call: (facts) => isPrompt(facts) && facts.status <= 400 },
    'embedded-names': { call: ({ path, status }) => path === '/view' && status === 200 },
    'remote-extra-data': {
      call: (facts) =>
        isPrompt(facts) && /"(extra_pnginfo|auth_token_comfy_org)"/.test(facts.body()),
    },
    'others-files': { call: isRefused },
  }),
  ...onlyWhere(({ isHosted = false }) => isHosted, {
    'hosted-routes': {
      call: ({ path, status }) =>
        status === 404 && /^\/(assets|tags|files\/mask-layers|experiment)/.test(path),
    },
    'hosted-more-routes': {
      call: ({ path }) => /^\/(history|settings|models|users|extensions|free)(\/|$)/.test(path),
    },
    'hosted-other-paths': { call: ({ path }) => /^\/(interrupt|logs)$/.test(path) },
    'hosted-errors': { call: ({ status }) => status >= 400 },
    'hosted-statuses': { call: ({ status }) => status >= 400 },
    'hosted-queue': {
      call: (facts) =>
        (facts.path === '/queue' && facts.method === 'POST') ||
        (isAccepted(facts) && hasOrder(facts)),
    },
    'hosted-files': { call: isUpload },
    'hosted-view': { call: ({ path }) => path === '/view' },
    'hosted-jobs': {
      call: (facts) =>
        facts.path === '/jobs' || (isPrompt(facts) && /"prompt_id"/.test(facts.body())),
    },
    'hosted-status-words': {
      call: ({ path }) => /^\/(job\/[^/]+\/status$|jobs\/.|history_v2\/.)/.test(path),
    },
    'hosted-userdata': { call: isUserdata },
  }),
} as const satisfies { readonly [row: string]: Rule };

export type DifferenceName = keyof typeof DIFFERENCE_RULES;
