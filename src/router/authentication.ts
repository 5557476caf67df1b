import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Caller } from '../protocol/job-api.ts';
import { type ModelKeys, grantCovers } from './keys.ts';
import type { ModelLimits } from './limits.ts';
import { type ReplyError, replyError } from './reply.ts';
import type { ModelDef } from './model-def.ts';

/** A caller of the router and its rights. */
export type ModelCaller = {
  readonly caller: Caller;
  /** The workspace that pays. Its running calls are counted together. */
  readonly workspace: string;
  readonly mayUse: (id: string) => boolean;
  readonly inFlight: number;
  readonly committedCents: number;
  readonly requestsPerMinute: number;
  /** The most that the workspace may be charged in total, in US cents; `undefined` for no limit. */
  readonly creditsCents: number | undefined;
};

type AuthenticationOptions = {
  /**
   * Returns the user of a key; `undefined` when this server does not know the key. It is remembered as a secret, so it
   * is not called with a key that is refused.
   */
  readonly callerOf: (key: string) => Caller | undefined;
  readonly keys: ModelKeys | undefined;
  readonly limits: ModelLimits;
};

/**
 * Identifies a caller, or refuses the call. Without configured keys, any credential is a workspace
 * of its own; a call without one is refused.
 */
export function authenticate(
  { headers }: IncomingMessage,
  { callerOf, keys, limits }: AuthenticationOptions,
): ModelCaller | ReplyError {
  const credential = presentedKey(headers);
  if (credential === undefined) {
    return refuseKey('A key is needed: X-API-Key, or Authorization: Bearer.');
  }
  if (keys !== undefined && !credential.startsWith(keys.prefix)) {
    return refuseKey('This is not a key, and no identity provider is configured here.');
  }
  const grant = keys?.find(credential);
  if (keys !== undefined && grant === undefined) return refuseKey('This key is not known here.');
  if (grant?.enabled === false)
    return replyError('not_enabled', 'The router is not enabled for you.');
  const caller = callerOf(credential);
  if (caller === undefined) return refuseKey('This key is not known here.');
  return {
    caller,
    workspace: grant?.workspace ?? caller.user,
    mayUse: (id: string) => grant === undefined || grantCovers(grant, id),
    inFlight: grant?.in_flight ?? limits.inFlight,
    committedCents: grant?.committed_cents ?? limits.committedCents,
    requestsPerMinute: grant?.requests_per_minute ?? limits.requestsPerMinute,
    creditsCents: grant?.credits_cents,
  };
}

/** Returns the key of a call. `X-API-Key` has priority; an empty header counts as absent. */
function presentedKey(headers: IncomingMessage['headers']): string | undefined {
  const key = headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^bearer\s+(\S.*)$/i.exec(headers.authorization ?? '')?.[1]?.trim();
}

function refuseKey(detail: string): ReplyError {
  return replyError('unauthorized', detail, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

/** One request to a route of the router. */
export type ModelRequest = {
  readonly ctx: Koa.Context;
  readonly modelCaller: ModelCaller;
  readonly requestId: string;
};

/** One call of a model as it was received. */
export type Invocation = ModelRequest & { readonly def: ModelDef };
