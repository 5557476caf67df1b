import type Koa from 'koa';
import type { Authenticate } from '../auth/identity.ts';
import type { OperatorCheck } from '../auth/operator.ts';
import { V1Error, invalidRequest, plainError, sendJson } from '../dialects/errors.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import { type JobQueueReason, pendingReasonOf } from '../prompts/pending-reason.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';
import { LISTED_STATUSES } from '../translate/status.ts';
import type { ServerFacts } from './api-types.ts';
import { readLanguage, writeCode } from './job-code.ts';
import { type PromptServices, findPrompt, jobAnswer } from './job-detail.ts';
import { type JobPageQuery, createJobList } from './job-list.ts';
import type { TrafficScope } from './traffic-store.ts';

/** A call of `/holdover/api` with its caller. */
export type ConsoleRequest = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  /** Why the caller is not the operator; `null` for the operator. */
  readonly operatorRefusal: string | null;
  readonly query: URLSearchParams;
};

/** Answers one path. Returns the body; `undefined` when it has written the answer itself. */
type ConsoleHandler = (request: ConsoleRequest) => Promise<object | undefined> | object;

/** Paths below `/holdover/api/`, with their method. */
export type ConsoleHandlers = {
  readonly [methodAndPath in `${'GET' | 'POST'} ${(typeof PATHS)[number]}`]?: ConsoleHandler;
};

/** Tells who calls. */
type ConsoleAccess = { readonly authenticate: Authenticate; readonly checkOperator: OperatorCheck };

export type ConsoleServices = PromptServices & {
  readonly addresses: PublicAddresses;
  /** The port, without a record of its calls. */
  readonly jobs: JobApi;
  readonly jobQueueReason: (jobId: string | null) => Promise<JobQueueReason>;
  readonly now: () => number;
  readonly whenCurrent: (user: string) => Promise<void>;
  readonly facts: ServerFacts;
};

const PREFIX = '/holdover/api/';
/** The report about a caller's own clients, for programs. */
const REPORT_PATH = '/holdover/report.json';

/**
 * The paths of the API. None of them is `/holdover` and a path of v1, since `/holdover` may be a
 * public prefix.
 */
const PATHS = [
  'session',
  'job-list',
  'job',
  'job/code',
  'clients',
  'server',
  'traffic',
  'traffic/entry',
  'traffic/picture',
  'traffic/clear',
] as const;

export const CONSOLE_PATHS: readonly string[] = PATHS.map((path) => PREFIX + path);

/**
 * The API of Holdover's own page, `/holdover/api/*`. It changes nothing: the page cancels and
 * submits through v1.
 */
export function consoleRoutes(
  { authenticate, checkOperator }: ConsoleAccess,
  handlers: ConsoleHandlers,
): Koa.Middleware {
  const table = new Map(Object.entries(handlers));
  return (ctx, next) => {
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    if (ctx.path === REPORT_PATH && method === 'GET') return answer(ctx, 'GET clients');
    if (!ctx.path.startsWith(PREFIX)) return next();
    return answer(ctx, `${method} ${ctx.path.slice(PREFIX.length)}`);
  };

  async function answer(ctx: Koa.Context, name: string): Promise<void> {
    const handler = table.get(name);
    if (handler === undefined) throw new V1Error(404, plainError('not_found', 'No such route.'));
    const caller = await authenticate(ctx.req);
    if (caller === undefined) {
      const body = plainError('unauthorized', 'A valid key is needed.');
      throw new V1Error(401, body, { headers: { 'WWW-Authenticate': 'Bearer' } });
    }
    const operatorRefusal = checkOperator(ctx.req);
    const query = new URLSearchParams(ctx.querystring);
    const body = await handler({ ctx, caller, operatorRefusal, query });
    if (body !== undefined) sendJson(ctx, body as Json);
  }
}

/** Refuses callers that are not the operator. */
export function requireOperator({ operatorRefusal }: ConsoleRequest): void {
  if (operatorRefusal === null) return;
  throw new V1Error(403, plainError('operator_only', `Only for the operator. ${operatorRefusal}`));
}

/** Returns whose facts a call asks for: the caller's own or, with `scope=all`, those of all users. */
export function scopeOf(request: ConsoleRequest): TrafficScope {
  const isAll = request.query.get('scope') === 'all';
  if (isAll) requireOperator(request);
  return { user: request.caller.user, isAll };
}

/** The routes for every caller: short facts about the server, and the caller's own jobs. */
export function jobHandlers(services: ConsoleServices): ConsoleHandlers {
  const { addresses, facts, whenCurrent } = services;
  const list = createJobList(services);

  async function find({ caller, query }: ConsoleRequest) {
    await whenCurrent(caller.user);
    const found = await findPrompt(services, caller.user, query.get('id') ?? '');
    if (found) return found;
    throw new V1Error(404, plainError('not_found', 'You have no job of this id.'));
  }

  return {
    'GET session': ({ ctx, operatorRefusal }) => ({
      ...facts,
      is_operator: operatorRefusal === null,
      operator_reason: operatorRefusal,
      address: addresses.of(ctx.req)?.base ?? '',
    }),
    async 'GET job-list'({ caller, query }) {
      await whenCurrent(caller.user);
      return list(caller.user, readListQuery(query));
    },
    async 'GET job'(request) {
      const found = await find(request);
      const { live } = found;
      const pendingReason =
        live && (await pendingReasonOf(live, () => services.jobQueueReason(live.jobId)));
      return jobAnswer(found, { nowMs: services.now(), pendingReason: pendingReason ?? null });
    },
    async 'GET job/code'(request) {
      const language = readLanguage(request.query);
      const { row } = await find(request);
      const baseUrl = addresses.of(request.ctx.req)?.base ?? '';
      return writeCode(services.jobs, { caller: request.caller, row, language, baseUrl });
    },
  };
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;

function readListQuery(query: URLSearchParams): JobPageQuery {
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw invalidRequest(`"limit" is a number from 1 to ${MAX_LIMIT}.`);
  }
  const names = (query.get('status') ?? '').split(',').filter((name) => name !== '');
  const statuses = LISTED_STATUSES.filter((status) => names.includes(status));
  if (statuses.length < names.length)
    throw invalidRequest(`"status" is of ${LISTED_STATUSES.join(', ')}.`);
  const api = query.get('api') ?? undefined;
  if (api !== undefined && api !== 'v1' && api !== 'v2') throw invalidRequest('"api" is v1 or v2.');
  return {
    limit,
    statuses,
    api,
    cursor: query.get('cursor') ?? undefined,
    clientId: query.get('client_id') ?? undefined,
    text: query.get('text')?.trim() ?? '',
  };
}
