import type Koa from 'koa';
import type { V1RouteName } from '../migration/v1-routes.ts';
import type { Caller } from '../protocol/job-api.ts';

/** One call of a v1 route, with its caller known and its path matched. */
export type V1Request = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  readonly params: { readonly [name: string]: string };
  readonly query: URLSearchParams;
};

type RouteHandlers = {
  handle(request: V1Request): Promise<void> | void;
};

/** One v1 route with a row in `V1_ROUTES`, the table of v1 routes and their v2 calls. */
type RouteOf<Name extends V1RouteName> = Name extends `${infer Method} ${infer Path}`
  ? { readonly method: Method; readonly path: Path } & RouteHandlers
  : never;

/**
 * One v1 route. A `path` outside `/api` is served below `/api` as well; a `path` inside it only
 * there.
 */
export type V1Route = RouteOf<V1RouteName>;

/** Returns the name of the route's row in `V1_ROUTES`. */
export function routeNameOf({ method, path }: V1Route): V1RouteName {
  return `${method} ${path}` as V1RouteName;
}

/**
 * Returns the function that makes the routes of a family: each name with its handler, which gets
 * the services of the family.
 */
export function routesFor<Services>(handlers: {
  readonly [name in V1RouteName]?: (services: Services, request: V1Request) => Promise<void> | void;
}): (services: Services) => readonly V1Route[] {
  return (services) =>
    Object.entries(handlers).map(([name, handler]) => {
      const [method, path] = name.split(' ');
      const handle = (request: V1Request) => handler(services, request);
      return { method, path, handle } as V1Route;
    });
}

/** Returns the paths at which the route is served. */
export function aliasesOf({ path }: V1Route): readonly string[] {
  const hasNoAlias = path.startsWith('/internal/') || path.startsWith('/api/');
  return hasNoAlias ? [path] : [path, `/api${path}`];
}

/** Returns routes that answer after `isReady` has resolved for the user of the call. */
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
