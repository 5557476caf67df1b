import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { PublicAddresses } from '../http/public-address.ts';
import type { Logger } from '../telemetry.ts';
import { hasControlCharacter } from '../wire/control-characters.ts';
import { type Json, stringifyJson } from '../wire/json.ts';
import { routerRefusal } from '../wire/router-refusal.ts';
import { readTarget } from '../wire/target.ts';
import { isV2Path } from '../wire/v2-paths.ts';
import { type FailedCall, errorBody } from './error-body.ts';
import { faultOf, plainError } from './errors.ts';
import type { Refusal } from './guard.ts';

/** Of a header that the log repeats. */
const MAX_SHOWN_CHARS = 200;

/** The answer to a refused request: in the form of the API it is for, with the rule that refused it. */
export function refusalAnswer(call: FailedCall, { status, rule, message }: Refusal): RefusalAnswer {
  const ofRouter = routerRefusal(call.url, status, randomUUID, message);
  if (ofRouter) return { status, ...ofRouter };
  const { path } = readTarget(call.url);
  if (isV2Path(path)) return refusalInV2(path, { status, rule, message });
  const body: Json = errorBody(plainError(rule, message), call) ?? '';
  if (typeof body === 'string') return { status, headers: typed('text/plain'), body };
  return { status, headers: typed('application/json'), body: stringifyJson(body) };
}

function refusalInV2(path: string, { status, rule, message }: Refusal): RefusalAnswer {
  // The contract knows no malformed id or hash: there is nothing of that name.
  const isNoName = rule === 'control_character' && hasControlCharacter(path, 'encoded again');
  const [toldStatus, code] = isNoName ? [404, 'not_found'] : [status, faultOf(status).code];
  const json = { error: { code, message, details: { rule } } };
  return { status: toldStatus, headers: typed('application/json'), body: stringifyJson(json) };
}

function typed(type: string): { readonly 'Content-Type': string } {
  return { 'Content-Type': `${type}; charset=utf-8` };
}

type RefusalAnswer = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
};

/** Says in the log which rule refused a request, and what it was that the rule did not like. */
export function logRefusal(
  deps: {
    readonly log: Pick<Logger, 'warn'>;
    readonly addresses: Pick<PublicAddresses, 'clientOf' | 'forwardedHostOf'>;
  },
  request: IncomingMessage,
  { status, rule }: Refusal,
): void {
  const { headers, method } = request;
  const shown = (text: unknown) =>
    typeof text === 'string' ? text.slice(0, MAX_SHOWN_CHARS) : text;
  const said = {
    host: shown(headers.host),
    origin: shown(headers.origin),
    site: shown(headers['sec-fetch-site']),
    forwardedHost: shown(deps.addresses.forwardedHostOf(request)),
    client: deps.addresses.clientOf(request),
  };
  deps.log.warn({ event: 'request.refused', status, rule, method, ...said }, 'request refused');
}
