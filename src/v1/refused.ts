import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Logger } from '../telemetry.ts';
import { stringifyJson } from '../wire/json.ts';
import { routerRefusal } from '../wire/router-refusal.ts';
import { readTarget } from '../wire/target.ts';
import { isV2Path } from '../wire/v2-paths.ts';
import { plainError } from './errors.ts';
import type { Refusal } from './guard.ts';

/** Of a header that the log repeats. */
const MAX_SHOWN_CHARS = 200;

/** The answer to a refused request: in the form of the API it is for, with the rule that refused it. */
export function refusalAnswer(
  url: string | undefined,
  { status, rule, message }: Refusal,
): { readonly headers: { readonly [name: string]: string }; readonly body: string } {
  const ofRouter = routerRefusal(url, status, randomUUID, message);
  if (ofRouter) return ofRouter;
  const json = isV2Path(readTarget(url ?? '').path)
    ? { error: { code: V2_CODES[status], message, details: { rule } } }
    : plainError(rule, message);
  const headers = { 'Content-Type': 'application/json; charset=utf-8' };
  return { headers, body: stringifyJson(json) };
}

const V2_CODES = {
  400: 'invalid_request',
  403: 'forbidden',
  431: 'invalid_request',
} as const satisfies Record<Refusal['status'], string>;

/** Says in the log which rule refused a request, and what it was that the rule did not like. */
export function logRefusal(
  log: Pick<Logger, 'warn'>,
  { headers, method }: IncomingMessage,
  { status, rule }: Refusal,
): void {
  const shown = (text: unknown) =>
    typeof text === 'string' ? text.slice(0, MAX_SHOWN_CHARS) : text;
  const said = {
    host: shown(headers.host),
    origin: shown(headers.origin),
    site: shown(headers['sec-fetch-site']),
  };
  log.warn({ event: 'request.refused', status, rule, method, ...said }, 'request refused');
}
