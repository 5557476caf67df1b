import { sendJson } from '../../dialects/errors.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { V1Request } from '../routes.ts';

const NOTHING_SCANNED = { scanned: 0, total: 0, created: 0, skipped: 0 };
const WAITS = new Set(['true', '1', 'yes']);

/**
 * Scans of the folders. There is nothing to scan: the ledger has each file from its first moment.
 * So a scan ends when it starts, and sends no frames.
 */
export const scanRoutes = {
  'POST /api/assets/seed'(_: unknown, { ctx, query }: V1Request): void {
    const isAwaited = WAITS.has((query.get('wait') ?? '').toLowerCase());
    const completed: JsonObject = { status: 'completed', progress: NOTHING_SCANNED, errors: [] };
    if (isAwaited) sendJson(ctx, completed);
    else sendJson(ctx, { status: 'started' }, 202);
  },
  'GET /api/assets/seed/status': (_: unknown, { ctx }: V1Request): void =>
    sendJson(ctx, { state: 'IDLE', progress: null, errors: [] }),
  'POST /api/assets/seed/cancel': (_: unknown, { ctx }: V1Request): void =>
    sendJson(ctx, { status: 'idle' }),
  'POST /api/assets/prune': (_: unknown, { ctx }: V1Request): void =>
    sendJson(ctx, { status: 'completed', marked: 0 }),
};
