import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { ResultForm } from '../translate/stored-history-entry.ts';
import { readTarget } from '../protocol/request-target.ts';
import { hasLogin } from '../protocol/url-credentials.ts';

/** The v1 server a client was written for: the original one, or the hosted service. */
export type Dialect = 'local' | 'hosted';

/** `auto`: decided by the form of each call and each socket. */
export type DialectSetting = 'auto' | Dialect;

/** The differences between the two v1 servers: local, hosted. No other code tests for the dialect. */
const RULES = {
  /** Sockets that get a prompt with a `client_id`: those of that id, or all of the user. */
  promptWithClientId: ['its-sockets', 'all-sockets'],
  /** Frames a socket gets of a prompt without `client_id`, and of a v2 job. */
  promptWithoutClientId: ['broadcasts', 'everything'],
  /** Previews of samplers: as `--preview-method` and the prompt say, or always. */
  samplerPreviews: ['by-method', 'always'],
  /** Error bodies below `/api`. */
  apiErrors: ['as-recorded', 'code-and-message'],
  /**
   * Status of an upstream failure: a gateway's (502, 503), or the ones documented for the route.
   */
  serviceFailure: ['gateway', 'documented'],
  /**
   * `exception_type`: the word of the node's own language, or one of the six documented ones. Videos:
   * among the `images` of a node, or in its `video`.
   */
  results: ['own', 'documented'] satisfies [ResultForm, ResultForm],
  /** Nodes of a `progress_state`: their progress, or their `class_type` too. */
  nodeStates: ['own', 'documented'],
  /** Prompts that `GET /queue` shows as running: one, as the original runs one at a time, or all. */
  queueRunning: ['one', 'all'],
  /** `POST /queue` with `delete`: pending prompts only, or the running one as well. */
  queueDelete: ['pending', 'pending-and-running'],
  /** Body of the answer: none, or the cancelled ids. */
  queueAnswer: ['empty', 'deleted'],
  /** `POST /api/jobs/…/cancel`: an id that names no job is passed over, or a 404. */
  jobCancel: ['any-id', 'known-ids'],
  /** Order of a prompt's members in `GET /queue`: number, `extra_data`, outputs; or place, outputs, `create_time`. */
  queueItem: ['as-submitted', 'as-scheduled'],
  /** `subfolder` of uploads, of `/view` and in the names of a prompt: a folder, or ignored. */
  subfolder: ['folder', 'ignored'],
  /** `/view` without `filename`: nothing is found, or a field is missing (400: "missing fields"). */
  viewWithoutName: ['not-found', 'bad-request'],
  /** Values of `channel` in `/view` that ask for the alpha. */
  alphaChannel: ['a', 'a-or-alpha'],
  /** `/api/view`: a 302 to a link that expires. */
  apiView: ['redirect-except-browsers', 'redirect'],
  /** Answers of the settings routes: bare values and empty bodies, or `{value}`, the merged object and a 404. */
  settings: ['bare', 'wrapped'],
  /** A folder of models without a file: an empty list, or a 404. */
  emptyModelFolder: ['listed', 'not-found'],
  /** `notification` messages: texts for people about what their prompt waits for. */
  notifications: ['none', 'sent'],
} as const;

/** The rules of one of the two. */
export type DialectRules = {
  readonly [Rule in keyof typeof RULES]: (typeof RULES)[Rule][number];
};

const RULES_OF: Readonly<Record<Dialect, DialectRules>> = { local: rulesAt(0), hosted: rulesAt(1) };

function rulesAt(index: 0 | 1): DialectRules {
  const rules = Object.entries(RULES).map(([rule, values]) => [rule, values[index]]);
  return Object.fromEntries(rules) as DialectRules;
}

type RequestForm = Pick<IncomingMessage, 'headers' | 'url'>;

/** Decides the dialect of calls and sockets by their form, or by the setting. */
export type Dialects = {
  readonly ofCall: (call: RequestForm) => Dialect;
  readonly ofSocket: (call: RequestForm) => Dialect;
};

export function createDialects(setting: DialectSetting): Dialects {
  if (setting !== 'auto') return { ofCall: () => setting, ofSocket: () => setting };
  return {
    // An empty key counts, and so does the operator's token: the header decides, not the identity.
    ofCall({ headers, url = '' }) {
      const isHosted = headers['x-api-key'] !== undefined && isBelowApi(url);
      return isHosted ? 'hosted' : 'local';
    },
    ofSocket: ({ url = '' }) => (hasLogin(url) ? 'hosted' : 'local'),
  };
}

export function rulesOf(dialect: Dialect): DialectRules {
  return RULES_OF[dialect];
}

/** The rules of the call being answered. */
export function rulesFor(ctx: Pick<Koa.Context, 'state'>): DialectRules {
  return RULES_OF[(ctx.state as { readonly dialect?: Dialect }).dialect ?? 'local'];
}

/** How `/view` sends a file. Redirects are used only for paths below `/api`. */
export function viewRuleFor(
  ctx: Pick<Koa.Context, 'state' | 'url'>,
): DialectRules['apiView'] | 'stream' {
  return isBelowApi(ctx.url) ? rulesFor(ctx).apiView : 'stream';
}

function isBelowApi(url: string): boolean {
  return readTarget(url).path.startsWith('/api/');
}
