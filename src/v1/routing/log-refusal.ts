import type { IncomingMessage } from 'node:http';
import type { PublicAddresses } from '../../http/public-address.ts';
import type { Logger } from '../../observability/log.ts';
import { hasControlCharacter } from '../../protocol/control-characters.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import { toPythonText } from '../../protocol/python-json-text.ts';
import { routerRefusal } from '../../dialects/router-refusal.ts';
import { readTarget } from '../../protocol/request-target.ts';
import { isV2Path } from '../../protocol/v2-paths.ts';
import { type FailedCall, errorBody } from '../../dialects/error-reply.ts';
import { faultOf, plainError } from '../../dialects/errors.ts';
import type { GuardRefusal } from '../../auth/guard.ts';

/** The most characters of a header that the log repeats. */
const MAX_SHOWN_CHARS = 200;

/** The answer to a refused request: in the form of the API it is for, with the rule that refused it. */
export function refusalReply(
  failedCall: FailedCall,
  { status, rule, message }: GuardRefusal,
): RefusalReply {
  const routerReply = routerRefusal(failedCall.url, status, message);
  if (routerReply) return { status, ...routerReply };
  const { path } = readTarget(failedCall.url);
  if (isV2Path(path)) return v2RefusalReply(path, { status, rule, message });
  const body: Json = errorBody(plainError(rule, message), failedCall) ?? '';
  if (typeof body === 'string') return { status, headers: contentType('text/plain'), body };
  return {
    status,
    headers: contentType('application/json'),
    body: toPythonText(stringifyJson(body)),
  };
}

function v2RefusalReply(path: string, { status, rule, message }: GuardRefusal): RefusalReply {
  // The contract knows no malformed id or hash: there is nothing of that name.
  const isMalformedName =
    rule === 'control_character' && hasControlCharacter(path, 'encoded again');
  const [shownStatus, code] = isMalformedName ? [404, 'not_found'] : [status, faultOf(status).code];
  const json = { error: { code, message, details: { rule } } };
  return {
    status: shownStatus,
    headers: contentType('application/json'),
    body: stringifyJson(json),
  };
}

function contentType(type: string): { readonly 'Content-Type': string } {
  return { 'Content-Type': `${type}; charset=utf-8` };
}

type RefusalReply = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
};

/** Says in the log which rule refused a request, and what it was that the rule did not like. */
export function logRefusal(
  options: {
    readonly log: Pick<Logger, 'warn'>;
    readonly addresses: Pick<PublicAddresses, 'clientOf' | 'forwardedHostOf'>;
  },
  request: IncomingMessage,
  { status, rule }: GuardRefusal,
): void {
  const { headers, method } = request;
  const shown = (text: unknown) =>
    typeof text === 'string' ? text.slice(0, MAX_SHOWN_CHARS) : text;
  const fields = {
    host: shown(headers.host),
    origin: shown(headers.origin),
    site: shown(headers['sec-fetch-site']),
    forwardedHost: shown(options.addresses.forwardedHostOf(request)),
    client: options.addresses.clientOf(request),
  };
  options.log.warn(
    { event: 'request.refused', status, rule, method, ...fields },
    'request refused',
  );
}
