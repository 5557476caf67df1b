import type Koa from 'koa';
import type { ModelDef } from './model-def.ts';
import type { ModelCaller } from './authentication.ts';

/** One request that may be served. */
export type ModelRequest = {
  readonly ctx: Koa.Context;
  readonly modelCaller: ModelCaller;
  readonly requestId: string;
};

/** One call of a model as it came in. */
export type Invocation = ModelRequest & { readonly def: ModelDef };
