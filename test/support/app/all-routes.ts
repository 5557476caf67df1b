import { V1_ROUTES, type V1RouteName } from '../../../src/migration/v1-routes.ts';
import type { V2RouteOptions } from '../../../src/v2/reply.ts';
import { v2Routes } from '../../../src/v2/routes.ts';

/** The API that a route belongs to. */
export type Form = 'v1' | 'v2' | 'router';

const V1 = (Object.keys(V1_ROUTES) as V1RouteName[]).map((name) => {
  const [method = '', path = ''] = name.split(' ');
  return { method, path };
});
const V2 = v2Routes({ jobs: {} } as unknown as V2RouteOptions).map(({ method, path }) => ({
  method,
  path: `/api/v2${path}`,
}));
const ROUTER = ['/v1/models', '/v2/models'].flatMap((models) => [
  { method: 'GET', path: models },
  { method: 'GET', path: `${models}/:provider/:model` },
  { method: 'POST', path: `${models}/:provider/:model` },
  { method: 'GET', path: `${models}/:provider/:model/openapi.json` },
]);

/** Every route of every API, from the tables that serve them. Parameters of paths begin with a colon. */
export const ROUTES: readonly (readonly [
  Form,
  { readonly method: string; readonly path: string },
])[] = [
  ...V1.flatMap(({ method, path }) => {
    const isOne = path.startsWith('/api/') || path.startsWith('/internal/');
    const paths = isOne ? [path] : [path, `/api${path}`];
    return paths.map((each) => ['v1', { method, path: each }] as const);
  }),
  ...V2.map((route) => ['v2', route] as const),
  ...ROUTER.map((route) => ['router', route] as const),
];
