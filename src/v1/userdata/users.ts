import { randomUUID } from 'node:crypto';
import type { BodyReader } from '../../http/json-body.ts';
import { requirePrintable, sendJson, textError } from '../../dialects/errors.ts';
import { readJson, requireObject } from '../routing/body.ts';
import { routesFor } from '../routes.ts';

type UserServices = { readonly bodies: BodyReader };

/** The user list of v1. It is fixed, since each key is a user and no accounts are kept. */
export const userRoutes = routesFor<UserServices>({
  'GET /users': (_, { ctx }) => sendJson(ctx, { storage: 'server', migrated: true }),
  /** Returns the id of a new account. The original looks at accounts in its multi-user mode only. */
  async 'POST /users'({ bodies }, { ctx }) {
    const { username } = requireObject(await readJson(ctx, bodies));
    const name = typeof username === 'string' ? requirePrintable(username, 'username').trim() : '';
    if (name === '') throw textError(400, 'username not provided');
    sendJson(ctx, `${name.replaceAll(/[^a-zA-Z0-9\-_]+/g, '-')}_${randomUUID()}`);
  },
});
