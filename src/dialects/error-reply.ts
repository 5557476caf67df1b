import type Koa from 'koa';
import { type Json, type JsonObject, isJsonObject } from '../protocol/json.ts';
import { readTarget } from '../protocol/request-target.ts';
import { isV2Path } from '../protocol/v2-paths.ts';
import { type DialectRules, rulesFor } from './dialect.ts';
import {
  type Fault,
  type V1Error,
  promptRefusal,
  sendEmpty,
  sendJson,
  sendText,
} from './errors.ts';

/** The call that failed: what decides on the form of its error. */
export type FailedCall = {
  readonly method: string;
  readonly url: string;
  readonly rules: Pick<DialectRules, 'apiErrors' | 'serviceFailure'>;
};

/** The body of an error in the form that its caller parses: JSON, a text, or nothing. */
export function errorBody(fault: Fault, { method, url, rules }: FailedCall): Json | undefined {
  const path = pathOf(url);
  if (isV2Path(readTarget(url).path))
    return { error: { code: fault.code, message: fault.message, details: null } };
  if (rules.apiErrors === 'as-recorded') return fault.localBody;
  return HOSTED_BODIES[documentedForm(method, path)](fault);
}

type DocumentedForm = 'PromptErrorResponse' | 'text' | 'ErrorResponse';

const HOSTED_BODIES = {
  // `additionalProperties: true`. Its clients look for `error`.
  PromptErrorResponse: ({ code, message, localBody: local }) => ({
    code,
    message,
    ...(isPromptRefusal(local) ? local : promptRefusal(code, message)),
  }),
  text: ({ message }) => message,
  ErrorResponse: ({ code, message }) => ({ code, message }),
} as const satisfies Record<DocumentedForm, (fault: Fault) => Json>;

/** The schema that the hosted service's document names for the errors of a call. */
function documentedForm(method: string, path: string): DocumentedForm {
  if (isSubmission(method, path)) return 'PromptErrorResponse';
  return /^\/userdata(\/|$)/.test(path) ? 'text' : 'ErrorResponse';
}

function isPromptRefusal(local: Json | undefined): local is JsonObject {
  return isJsonObject(local) && isJsonObject(local.error) && 'node_errors' in local;
}

/** Routes whose document names no error of the service: clients may try again after a 503. */
const DOCUMENTED_WITHOUT_500 = /^\/(object_info|features|workflow_templates|system_stats)(\/|$)/;

/** The status of an error. The hosted service is in trouble itself: it has no gateway to blame. */
function errorStatus(
  { status, blames }: Pick<V1Error, 'status' | 'blames'>,
  { method, url, rules }: FailedCall,
): number {
  const isServiceError = blames === 'job service' && (status === 502 || status === 503);
  if (!isServiceError || rules.serviceFailure === 'gateway') return status;
  const path = pathOf(url);
  return isSubmission(method, path) || DOCUMENTED_WITHOUT_500.test(path) ? 503 : 500;
}

function isSubmission(method: string, path: string): boolean {
  return method === 'POST' && path === '/prompt';
}

/** `--dialect hosted` holds for calls without the prefix as well. */
function pathOf(url: string): string {
  return readTarget(url).path.replace(/^\/api(?=\/)/, '');
}

/** Answers an error in the form of the call's dialect. */
export function sendError(ctx: Koa.Context, error: V1Error): void {
  const call = failedCall(ctx);
  const status = errorStatus(error, call);
  const body = errorBody(error.fault, call);
  ctx.set(error.headers);
  if (body === undefined) sendEmpty(ctx, status);
  else if (typeof body === 'string') sendText(ctx, status, body);
  else sendJson(ctx, body, status);
}

export function failedCall(ctx: Koa.Context): FailedCall {
  return { method: ctx.method, url: ctx.url, rules: rulesFor(ctx) };
}
