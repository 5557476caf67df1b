import type { BodyReader } from '../http/json-body.ts';
import { isJsonObject } from '../protocol/json.ts';
import { readJson } from './routing/body.ts';
import { V1Error, plainError, sendEmpty, sendJson, requirePrintable } from '../dialects/errors.ts';
import { type LogPanel, TERMINAL_SIZE } from '../observability/log-panel.ts';
import { routesFor } from './routes.ts';

/** Services of the log routes. */
export type LogServices = {
  readonly logs: LogPanel;
  readonly bodies: BodyReader;
};

const MAX_CLIENT_ID_CHARS = 128;

/** The log of this server and of the servers beside it, as far as it is about the caller. */
export const logRoutes = routesFor<LogServices>({
  /** Sends the log as one JSON string, as v1 does. */
  async 'GET /internal/logs'(services, { ctx, caller }) {
    const lines = (await services.logs.lastLines(caller.user)).map(({ t, m }) => `${t} - ${m}`);
    sendJson(ctx, lines.join(''));
  },
  async 'GET /internal/logs/raw'(services, { ctx, caller }) {
    sendJson(ctx, { entries: await services.logs.lastLines(caller.user), size: TERMINAL_SIZE });
  },
  async 'PATCH /internal/logs/subscribe'(services, { ctx, caller }) {
    const body = await readJson(ctx, services.bodies);
    if (!isJsonObject(body) || !('clientId' in body) || !('enabled' in body)) {
      throw new V1Error(400, plainError('missing_key', 'clientId and enabled are both needed.'));
    }
    const { clientId, enabled } = body;
    if (typeof clientId !== 'string' || clientId.length > MAX_CLIENT_ID_CHARS) {
      throw new V1Error(400, plainError('invalid_client_id', 'clientId is the id of a socket.'));
    }
    requirePrintable(clientId, 'clientId');
    if (enabled) await services.logs.subscribe(caller.user, clientId);
    else await services.logs.unsubscribe(caller.user, clientId);
    sendEmpty(ctx);
  },
});
