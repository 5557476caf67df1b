import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { ResultForm } from '../translate/stored-history-entry.ts';
import { readTarget } from '../protocol/request-target.ts';
import { loginIn } from '../protocol/url-credentials.ts';

/** The v1 server that a client was written for: the original one, or the hosted service. */
export type Dialect = 'local' | 'hosted';

/** `auto`: the form of each call and each socket decides. */
export type DialectSetting = 'auto' | Dialect;

/**
 * The differences between the two v1 servers, in the order local, hosted. No other code tests for
 * the dialect.
 */
const RULES = {
  /** The sockets that get a prompt with a `client_id`: those of that id, or all of the user. */
  promptWithClientId: ['its-sockets', 'all-sockets'],
  /** The frames that a socket gets of a prompt without `client_id`, and of a v2 job. */
  promptWithoutClientId: ['broadcasts', 'everything'],
  /** The previews of samplers: as `--preview-method` and the prompt say, or always. */
  samplerPreviews: ['by-method', 'always'],
  /** The error bodies below `/api`. */
  apiErrors: ['as-recorded', 'code-and-message'],
  /**
   * The status of an upstream failure: that of a gateway (502, 503), or those documented for the
   * route.
   */
  serviceFailure: ['gateway', 'documented'],
  /**
   * The name in `exception_type`: the class of the node's own language, or one of the six
   * documented ones. The place of videos: among the `images` of a node, or in its `video`.
   */
  results: ['own', 'documented'] satisfies [ResultForm, ResultForm],
  /** The nodes of a `progress_state`: their progress, or their `class_type` too. */
  nodeStates: ['own', 'documented'],
  /**
   * The prompts that `GET /queue` shows as running: one, as the original runs one at a time, or
   * all.
   */
  queueRunning: ['one', 'all'],
  /** The prompts that `POST /queue` with `delete` ends: pending ones, or running ones as well. */
  queueDelete: ['pending', 'pending-and-running'],
  /** The body of that answer: none, or the cancelled ids. */
  queueAnswer: ['empty', 'deleted'],
  /**
   * `POST /api/jobs/…/cancel` with an id that names no job: the id is ignored, or the answer is
   * 404.
   */
  jobCancel: ['any-id', 'known-ids'],
  /** The jobs in a list without `limit`: all of them, or as many as front ends ask for. */
  jobsListed: ['all', 'page'],
  /**
   * The members of a prompt in `GET /queue`: number, `extra_data`, outputs; or place, outputs,
   * `create_time`.
   */
  queueItem: ['as-submitted', 'as-scheduled'],
  /**
   * `subfolder` of uploads, of `/view` and in the names of a prompt: it is a folder, or is ignored.
   */
  subfolder: ['folder', 'ignored'],
  /** The previews of assets: a path on this server, or its whole address. */
  previewUrl: ['path', 'address'],
  /**
   * `/view` without `filename`: nothing is found, or a field is missing (400: "missing fields").
   */
  viewWithoutName: ['not-found', 'bad-request'],
  /** The values of `channel` in `/view` that ask for the alpha channel. */
  alphaChannel: ['a', 'a-or-alpha'],
  /** `/api/view`: a 302 to a link that expires, except to browsers or to all. */
  apiView: ['redirect-except-browsers', 'redirect'],
  /**
   * The answers of the settings routes: bare values and empty bodies; or `{value}`, the merged
   * object and a 404.
   */
  settings: ['bare', 'wrapped'],
  /** A folder of models without a file: an empty list, or 404. */
  emptyModelFolder: ['listed', 'not-found'],
  /** `notification` messages: texts that tell users why their prompt waits. */
  notifications: ['none', 'sent'],
} as const;

/** The rules of one dialect. */
export type DialectRules = {
  readonly [Rule in keyof typeof RULES]: (typeof RULES)[Rule][number];
};

const RULES_OF: Readonly<Record<Dialect, DialectRules>> = { local: rulesAt(0), hosted: rulesAt(1) };

function rulesAt(index: 0 | 1): DialectRules {
  const rules = Object.entries(RULES).map(([rule, values]) => [rule, values[index]]);
  return Object.fromEntries(rules) as DialectRules;
}

/**
 * A token of ComfyUI-Login, an extension of the original server: a bcrypt hash. No key of the hosted
 * service has this form.
 */
const LOCAL_LOGIN = /^\$2[aby]\$/;

type RequestForm = Pick<IncomingMessage, 'headers' | 'url'>;

/** Decides the dialect of calls and sockets: by their form, or by the setting. */
export type Dialects = {
  readonly ofCall: (call: RequestForm) => Dialect;
  readonly ofSocket: (call: RequestForm) => Dialect;
};

export function createDialects(setting: DialectSetting): Dialects {
  if (setting !== 'auto') return { ofCall: () => setting, ofSocket: () => setting };
  return {
    // An empty key counts, and so does the operator's token: the header decides, not the user
    // behind it.
    ofCall({ headers, url = '' }) {
      const isHosted = headers['x-api-key'] !== undefined && isBelowApi(url);
      return isHosted && !LOCAL_LOGIN.test(loginIn(url) ?? '') ? 'hosted' : 'local';
    },
    ofSocket({ url = '' }) {
      const login = loginIn(url) ?? '';
      return login === '' || LOCAL_LOGIN.test(login) ? 'local' : 'hosted';
    },
  };
}

export function rulesOf(dialect: Dialect): DialectRules {
  return RULES_OF[dialect];
}

/** Returns the rules for the call that is being answered. */
export function rulesFor(ctx: Koa.Context): DialectRules {
  return RULES_OF[ctx.state.dialect ?? 'local'];
}

/** Returns how `/view` sends a file. Redirects are used only for paths below `/api`. */
export function viewRuleFor(ctx: Koa.Context): DialectRules['apiView'] | 'stream' {
  return isBelowApi(ctx.url) ? rulesFor(ctx).apiView : 'stream';
}

function isBelowApi(url: string): boolean {
  return readTarget(url).path.startsWith('/api/');
}
