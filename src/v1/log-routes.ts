import type { BodyReader } from '../http/json-body.ts';
import { isJsonObject } from '../wire/json.ts';
import { readJson } from './body.ts';
import { V1Error, plainError, sendEmpty, sendJson } from './errors.ts';
import { type Journal, type LogEntry, ENTRIES_KEPT } from './journal.ts';
import { type LogFeed, TERMINAL_SIZE } from './log-feed.ts';
import type { LogShare } from './log-share.ts';
import { printable } from './printable.ts';
import type { V1Request, V1Route } from './routes.ts';

/** What the log routes need of the house. */
export type LogDeps = {
  readonly journal: Pick<Journal, 'entries'>;
  readonly logShare: Pick<LogShare, 'gather'>;
  readonly logFeed: Pick<LogFeed, 'subscribe' | 'unsubscribe'>;
  readonly bodies: BodyReader;
};

const MAX_CLIENT_ID_CHARS = 128;

/** The log of this server and those beside it, as far as it is about the caller. */
export function logRoutes(deps: LogDeps): readonly V1Route[] {
  return [
    { method: 'GET', path: '/internal/logs', handle: (request) => asText(deps, request) },
    { method: 'GET', path: '/internal/logs/raw', handle: (request) => asEntries(deps, request) },
    {
      method: 'PATCH',
      path: '/internal/logs/subscribe',
      handle: (request) => subscribe(deps, request),
    },
  ];
}

/** v1 sends its log as one JSON string. */
async function asText(deps: LogDeps, { ctx, caller }: V1Request): Promise<void> {
  const lines = (await entriesOf(deps, caller.user)).map(({ t, m }) => `${t} - ${m}`);
  sendJson(ctx, lines.join(''));
}

async function asEntries(deps: LogDeps, { ctx, caller }: V1Request): Promise<void> {
  sendJson(ctx, { entries: await entriesOf(deps, caller.user), size: TERMINAL_SIZE });
}

async function entriesOf({ journal, logShare }: LogDeps, user: string): Promise<LogEntry[]> {
  const all = [...(await logShare.gather(user)), ...journal.entries(user)];
  return all.toSorted((a, b) => (a.t < b.t ? -1 : Number(a.t > b.t))).slice(-ENTRIES_KEPT);
}

async function subscribe(deps: LogDeps, { ctx, caller }: V1Request): Promise<void> {
  const body = await readJson(ctx, deps.bodies);
  if (!isJsonObject(body) || !('clientId' in body) || !('enabled' in body)) {
    throw new V1Error(400, plainError('missing_key', 'clientId and enabled are both needed.'));
  }
  const { clientId, enabled } = body;
  if (typeof clientId !== 'string' || clientId.length > MAX_CLIENT_ID_CHARS) {
    throw new V1Error(400, plainError('invalid_client_id', 'clientId is the id of a socket.'));
  }
  printable(clientId, 'clientId');
  if (enabled) await deps.logFeed.subscribe(caller.user, clientId);
  else await deps.logFeed.unsubscribe(caller.user, clientId);
  sendEmpty(ctx);
}
