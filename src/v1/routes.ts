import type Koa from 'koa';
import type { V1RouteName } from '../migration/v1-routes.ts';
import type { Caller } from '../protocol/job-api.ts';

/** One call of the old API, its caller known and its path matched. */
export type V1Request = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  readonly params: { readonly [name: string]: string };
  readonly query: URLSearchParams;
};

type RouteHandlers = {
  handle(request: V1Request): Promise<void> | void;
};

/** One route of the old API, with a row in the table of what takes its place. */
type RouteOf<Name extends V1RouteName> = Name extends `${infer Method} ${infer Path}`
  ? { readonly method: Method; readonly path: Path } & RouteHandlers
  : never;

/** One route of the old API. A `path` outside `/api` is served below `/api` as well; one in `/api` only there. */
export type V1Route = RouteOf<V1RouteName>;

/** Its row in the table of what takes the place of v1. */
export function routeNameOf({ method, path }: V1Route): V1RouteName {
  return `${method} ${path}` as V1RouteName;
}

/** The routes of a family: each name with its handler, which gets the services of the family. */
export function routesOf<Services>(
  services: Services,
  handlers: {
    readonly [name in V1RouteName]?: (
      services: Services,
      request: V1Request,
    ) => Promise<void> | void;
  },
): readonly V1Route[] {
  return Object.entries(handlers).map(([name, handler]) => {
    const [method, path] = name.split(' ');
    const handle = (request: V1Request) => handler(services, request);
    return { method, path, handle } as V1Route;
  });
}

/** The paths it is served at. */
export function aliasesOf({ path }: Pick<V1Route, 'path'>): readonly string[] {
  const hasNoAlias = path.startsWith('/internal/') || path.startsWith('/api/');
  return hasNoAlias ? [path] : [path, `/api${path}`];
}

/** The same routes; each is answered when `isReady` has resolved for its user. */
export function whenReady(
  isReady: (user: string) => Promise<void>,
  routes: readonly V1Route[],
): readonly V1Route[] {
  return routes.map((route) => ({
    ...route,
    async handle(request) {
      await isReady(request.caller.user);
      await route.handle(request);
    },
  }));
}
