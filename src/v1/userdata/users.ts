import { V1Error, plainError, sendJson } from '../../dialects/errors.ts';
import { type V1Route, routesOf } from '../routes.ts';

/** The user list of v1. It is fixed: here each key is a user, and no account can be made. */
export function userRoutes(): readonly V1Route[] {
  return routesOf(undefined, {
    'GET /users': (_, { ctx }) => sendJson(ctx, { storage: 'server', migrated: true }),
    'POST /users': refuseAccounts,
  });
}

/** The original makes an account here, which only its multi-user mode uses. */
function refuseAccounts(): never {
  const message = 'This server keeps no accounts: whoever presents a key is a user.';
  throw new V1Error(400, plainError('no_accounts', message));
}
