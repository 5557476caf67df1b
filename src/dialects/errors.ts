import { STATUS_CODES } from 'node:http';
import type Koa from 'koa';
import { type Json, stringifyJson } from '../protocol/json.ts';
import { promptRefusal } from '../protocol/node-errors.ts';
import { toPythonText } from '../protocol/python-json-text.ts';
import type { PromptRefusal } from '../protocol/v1.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';

/** An error with its texts for both dialects. */
export type Fault = {
  /** Short and stable: programs read it. */
  readonly code: string;
  /** A sentence: people read it. */
  readonly message: string;
  /** The body for local clients: JSON, a text, or nothing. */
  readonly localBody: Json | undefined;
  /** The rule that refused the call before it was read, which v2 names beside its own code. */
  readonly rule?: string;
};

type V1ErrorOptions = {
  readonly headers?: { readonly [name: string]: string };
  readonly cause?: unknown;
  /** Set when the service behind Holdover failed, not Holdover and not the client. */
  readonly blames?: 'job service';
};

/**
 * A v1 answer that is not a success. Any handler may throw it; the outermost middleware renders it.
 */
export class V1Error extends Error {
  override readonly name = 'V1Error';
  readonly status: number;
  readonly fault: Fault;
  readonly headers: { readonly [name: string]: string };
  readonly blames: 'job service' | undefined;

  /** A `fault` is a text where the original's body is that text. */
  constructor(status: number, fault: Fault | string, options: V1ErrorOptions = {}) {
    super(`v1 answer ${status}`, { cause: options.cause });
    this.status = status;
    this.fault = typeof fault === 'object' ? fault : faultOf(status, fault);
    this.headers = options.headers ?? {};
    this.blames = options.blames;
  }
}

const CODES: { readonly [status: number]: string } = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  409: 'conflict',
  413: 'payload_too_large',
  415: 'unsupported_encoding',
  416: 'range_not_satisfiable',
  417: 'expectation_failed',
  431: 'invalid_request',
  503: 'server_busy',
  507: 'insufficient_storage',
};

/** Returns an error with the body that the original sends: JSON, a text, or nothing. */
export function faultOf(status: number, localBody?: Json, message?: string): Fault {
  const text = typeof localBody === 'string' ? localBody : `${STATUS_CODES[status] ?? 'Refused'}.`;
  return { code: CODES[status] ?? 'internal_error', message: message ?? text, localBody };
}

/**
 * Returns an error that the original answers with an empty body. Hosted clients get the message.
 */
export function emptyError(status: number, message: string): V1Error {
  return new V1Error(status, faultOf(status, undefined, message));
}

/** Returns an error that the original answers as `{"error": "text"}`. */
export function textError(status: number, message: string): V1Error {
  return new V1Error(status, faultOf(status, { error: message }, message));
}

/**
 * Returns an error for which the original has no body, or which it does not know. Local clients
 * parse it as a refused prompt.
 */
export function plainError(code: string, message: string): Fault {
  return promptFault(promptRefusal(code, message));
}

/** Returns the 400 of a call whose query or body cannot be used. */
export function invalidRequest(message: string): V1Error {
  return new V1Error(400, plainError('invalid_request', message));
}

/** The error of a call without a key that is known. */
export const NO_VALID_KEY = plainError(
  'unauthorized',
  'A valid key is needed: X-API-Key, or Authorization: Bearer.',
);

/** Returns the error of a call that a rule refuses before it is read. */
export function ruleFault(rule: string, message: string): Fault {
  return { ...plainError(rule, message), rule };
}

/** Returns the error of a refused `POST /prompt`. */
export function promptFault(refusal: PromptRefusal): Fault {
  const { type, message } = refusal.error;
  return { code: type, message, localBody: refusal };
}

export function sendJson(ctx: Koa.Context, body: Json, status = 200): void {
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = v1Json(body);
}

/** Returns JSON as the original writes it. */
export function v1Json(body: Json): string {
  return toPythonText(stringifyJson(body));
}

/** Sends v1's empty answer: `Content-Length: 0` and no type. */
export function sendEmpty(ctx: Koa.Context, status = 200): void {
  ctx.status = status;
  ctx.body = Buffer.alloc(0);
  ctx.remove('Content-Type');
}

/** Returns the text. A control character in it is a 400 that names the `field`. */
export function requirePrintable(text: string, field: string): string {
  if (!hasControlCharacter(text)) return text;
  const message = `"${field}" has a control character.`;
  throw new V1Error(400, plainError('control_character', message));
}

/** Returns the header that says when to try again; none if that is not known. */
export function retryAfterHeader(seconds: number | undefined): { readonly [name: string]: string } {
  return seconds === undefined ? {} : { 'Retry-After': String(seconds) };
}
