import type Koa from 'koa';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { type Json, type JsonObject, isJsonObject, stringifyJson } from '../protocol/json.ts';
import { readTarget } from '../protocol/request-target.ts';
import { isV2Path } from '../protocol/v2-paths.ts';
import { type DialectRules, rulesFor } from './dialect.ts';
import { type Fault, type V1Error, faultOf, v1Json } from './errors.ts';
import { promptRefusal } from '../protocol/node-errors.ts';
import { routerRefusal } from './router-refusal.ts';

/** The facts about a failed call that decide the form of its error. */
export type FailedCall = {
  readonly method: string;
  readonly url: string;
  readonly rules: DialectRules;
};

/** An error before it has the form of an API. */
export type FailedAnswer = Pick<V1Error, 'status' | 'fault'> &
  Partial<Pick<V1Error, 'headers' | 'blames'>>;

/** The answer as it is written. */
export type ErrorReply = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  /** Empty for `HEAD`: its headers describe the body that other methods get. */
  readonly body: string;
};

/**
 * Returns the answer to a failed call in the form that its caller parses: that of the model router,
 * of v2, or of the call's dialect.
 */
export function errorReply(error: FailedAnswer, call: FailedCall): ErrorReply {
  const { status, headers, body } = replyInForm(error, call);
  const length = { 'Content-Length': String(Buffer.byteLength(body)) };
  return {
    status,
    headers: { ...error.headers, ...headers, ...length },
    body: call.method === 'HEAD' ? '' : body,
  };
}

function replyInForm(error: FailedAnswer, call: FailedCall): ErrorReply {
  const { status, fault } = error;
  const { path } = readTarget(call.url);
  const refusal = routerRefusal(path, status, fault.message);
  if (refusal) return { status, ...refusal };
  if (isV2Path(path)) return v2Reply(error, path);
  return { status: v1Status(error, call), ...v1Reply(v1Body(fault, call)) };
}

function v2Reply({ status, fault }: FailedAnswer, path: string): ErrorReply {
  const { code, message, rule } = fault;
  // The contract has no error for a malformed id or hash: it is an unknown name.
  const isMalformedName =
    rule === 'control_character' && hasControlCharacter(path, 'encoded again');
  const shownStatus = isMalformedName ? 404 : status;
  const error =
    rule === undefined
      ? { code, message, details: null }
      : { code: faultOf(shownStatus).code, message, details: { rule } };
  return {
    status: shownStatus,
    headers: typed('application/json'),
    body: stringifyJson({ error }),
  };
}

function v1Reply(body: Json | undefined): Omit<ErrorReply, 'status'> {
  if (body === undefined) return { headers: {}, body: '' };
  if (typeof body === 'string') return { headers: typed('text/plain'), body };
  return { headers: typed('application/json'), body: v1Json(body) };
}

function typed(type: string): ErrorReply['headers'] {
  return { 'Content-Type': `${type}; charset=utf-8` };
}

function v1Body(fault: Fault, { method, url, rules }: FailedCall): Json | undefined {
  if (rules.apiErrors === 'as-recorded') return fault.localBody;
  return HOSTED_BODIES[documentedForm(method, pathOf(url))](fault);
}

type DocumentedForm = 'PromptErrorResponse' | 'text' | 'ErrorResponse';

const HOSTED_BODIES = {
  // The schema allows more members (`additionalProperties: true`), and its clients look for
  // `error`.
  PromptErrorResponse: ({ code, message, localBody: local }) => ({
    code,
    message,
    ...(isPromptRefusal(local) ? local : promptRefusal(code, message)),
  }),
  text: ({ message }) => message,
  ErrorResponse: ({ code, message }) => ({ code, message }),
} as const satisfies Record<DocumentedForm, (fault: Fault) => Json>;

/** Returns the schema that the hosted service's document names for the errors of a call. */
function documentedForm(method: string, path: string): DocumentedForm {
  if (isSubmission(method, path)) return 'PromptErrorResponse';
  return /^\/userdata(\/|$)/.test(path) ? 'text' : 'ErrorResponse';
}

function isPromptRefusal(local: Json | undefined): local is JsonObject {
  return isJsonObject(local) && isJsonObject(local.error) && 'node_errors' in local;
}

/**
 * Routes for which the document names no error of the service: clients may try again after a 503.
 */
const DOCUMENTED_WITHOUT_500 = /^\/(object_info|features|workflow_templates|system_stats)(\/|$)/;

/**
 * Returns the status of an error. In the hosted dialect the service itself has failed: there is no
 * gateway.
 */
function v1Status({ status, blames }: FailedAnswer, { method, url, rules }: FailedCall): number {
  const isServiceError = blames === 'job service' && (status === 502 || status === 503);
  if (!isServiceError || rules.serviceFailure === 'gateway') return status;
  const path = pathOf(url);
  return isSubmission(method, path) || DOCUMENTED_WITHOUT_500.test(path) ? 503 : 500;
}

function isSubmission(method: string, path: string): boolean {
  return method === 'POST' && path === '/prompt';
}

/** Returns the path. `--dialect hosted` holds for calls without the prefix as well. */
function pathOf(url: string): string {
  return readTarget(url).path.replace(/^\/api(?=\/)/, '');
}

/** Answers an error in the form of the call. */
export function sendError(ctx: Koa.Context, error: FailedAnswer): void {
  const call = { method: ctx.method, url: ctx.url, rules: rulesFor(ctx) };
  const { status, headers, body } = errorReply(error, call);
  ctx.status = status;
  ctx.body = Buffer.from(body);
  // Koa sets a type for every body.
  ctx.remove('Content-Type');
  ctx.set(headers);
}
