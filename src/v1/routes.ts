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

/** One v1 route. */
export type V1Route = {
  /** Its method and path: its row in `V1_ROUTES`, the table of v1 routes and their v2 calls. */
  readonly name: V1RouteName;
  handle(request: V1Request): Promise<void> | void;
};

/**
 * Returns the function that makes the routes of a family: each name with its handler, which gets
 * the services of the family.
 */
export function routesFor<Services>(handlers: {
  readonly [name in V1RouteName]?: (services: Services, request: V1Request) => Promise<void> | void;
}): (services: Services) => readonly V1Route[] {
  return (services) =>
    Object.entries(handlers).map(([name, handler]) => ({
      name: name as V1RouteName,
      handle: (request) => handler(services, request),
    }));
}

/** Returns the paths at which a route is served. One outside `/api` is served below `/api` as well. */
export function aliasesOf(path: string): readonly string[] {
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
