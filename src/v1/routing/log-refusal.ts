import type { IncomingMessage } from 'node:http';
import type { Logger } from '../../observability/log.ts';
import type { CallChecks, GuardRefusal } from '../../auth/guard.ts';

/** The most characters of a header that the log repeats. */
const MAX_SHOWN_CHARS = 200;

/** Logs which rule refused a request, and the value that broke the rule. */
export function logRefusal(
  options: {
    readonly log: Logger;
    readonly auth: CallChecks;
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
    forwardedHost: shown(options.auth.addresses.forwardedHostOf(request)),
    client: options.auth.addresses.clientOf(request),
  };
  options.log.warn(
    { event: 'request.refused', status, rule, method, ...fields },
    'request refused',
  );
}
