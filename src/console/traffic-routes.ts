import { V1Error, plainError } from '../dialects/errors.ts';
import type { SecretRedactor } from '../observability/secret-redactor.ts';
import type { TrafficAnswer, TrafficDetail } from './api-types.ts';
import {
  type ConsoleHandlers,
  type ConsoleRequest,
  requireOperator,
  scopeOf,
} from './console-routes.ts';
import { pictureIn, shownBody } from './traffic/shown-body.ts';
import { type ShowText, createShowText } from './traffic/shown-text.ts';
import type { RecordedEntry, TrafficStore } from './traffic-store.ts';

type TrafficServices = {
  readonly store: TrafficStore;
  readonly secrets: SecretRedactor;
  /** Counts the servers that share the ledger. Each records its own traffic. */
  readonly countServers: () => Promise<number>;
};

/** The members of entries that contain no text of a client or a service. */
const OWN_WORDS: ReadonlySet<string> = new Set(['api', 'direction', 'kind', 'picture', 'server']);

/** The routes of the inspector. Callers see their own traffic; `scope=all` is for the operator. */
export function trafficHandlers(services: TrafficServices): ConsoleHandlers {
  const { store, secrets, countServers } = services;
  const showText = createShowText(secrets);

  /** Sends an answer through the last filter: no secret that is known by now is sent. */
  function send({ ctx }: ConsoleRequest, body: object): undefined {
    ctx.status = 200;
    ctx.set('Content-Type', 'application/json; charset=utf-8');
    ctx.body = secrets.redactedJson(body, OWN_WORDS);
    return undefined;
  }

  function find(request: ConsoleRequest): RecordedEntry {
    requireServer(request, store.server);
    const found = store.find(Number(request.query.get('id')), scopeOf(request));
    if (found) return found;
    throw new V1Error(404, plainError('not_found', 'This entry is gone.'));
  }

  return {
    async 'GET traffic'(request) {
      const scope = scopeOf(request);
      store.hold(scope);
      const servers = await countServers();
      const changed = store.changedAfter(afterOf(request, store.server), scope);
      return send(request, { ...changed, servers } satisfies TrafficAnswer);
    },
    async 'POST traffic/clear'(request) {
      requireOperator(request);
      store.clear();
      return send(request, {});
    },
    'GET traffic/entry': async (request) =>
      send(request, detailOf(find(request), request.caller.user, showText)),
    'GET traffic/picture': async (request) =>
      sendPicture(request, pictureIn(find(request), showText)),
  };
}

function sendPicture({ ctx }: ConsoleRequest, picture: Buffer | undefined): undefined {
  if (picture === undefined)
    throw new V1Error(404, plainError('not_found', 'There is no picture.'));
  ctx.status = 200;
  // The page knows the type of the bytes. The general type keeps other programs from showing them.
  ctx.set('Content-Type', 'application/octet-stream');
  ctx.body = picture;
  return undefined;
}

/**
 * Refuses a call for another server: behind a load balancer it may reach a server that has other
 * entries with the same ids.
 */
function requireServer({ query }: ConsoleRequest, server: string): void {
  const wanted = query.get('server') ?? server;
  if (wanted === server) return;
  throw new V1Error(404, plainError('other_server', 'Another server has this entry: ask again.'));
}

/** Reads `after`, which names a revision of each server that was asked: `a1b2.17,c3d4.5`. */
function afterOf({ query }: ConsoleRequest, server: string): number {
  const known = (query.get('after') ?? '').split(',').find((one) => one.startsWith(`${server}.`));
  return Number(known?.slice(server.length + 1) ?? 0) || 0;
}

function detailOf(recorded: RecordedEntry, user: string, showText: ShowText): TrafficDetail {
  const { entry, requestHeaders = [], responseHeaders = [] } = recorded;
  return {
    entry: { ...entry, is_other_user: recorded.user !== user },
    request_headers: requestHeaders,
    response_headers: responseHeaders,
    request: shownBody(recorded, 'request', showText),
    response: shownBody(recorded, 'response', showText),
  };
}
