import type Koa from 'koa';
import type { Caller } from '../wire/jobs.ts';

/** One call of the old API, its caller known and its path matched. */
export type V1Request = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  readonly params: { readonly [name: string]: string };
  readonly query: URLSearchParams;
};

/** One route of the old API. `path` is un-prefixed; the app serves its `/api` twin as well. */
export type V1Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  readonly path: string;
  handle(request: V1Request): Promise<void> | void;
};
