import type { IncomingMessage } from 'node:http';
import type { Config } from '../config/config.ts';
import { readHost } from '../http/public-address.ts';
import type { Caller } from '../protocol/job-api.ts';

/** Why a caller is the operator, or is not. */
export type OperatorAccess =
  | { readonly isOperator: true; readonly by: 'token' | 'loopback' }
  | { readonly isOperator: false; readonly reason: string };

/** Decides about an authenticated caller. */
export type OperatorCheck = (
  request: Pick<IncomingMessage, 'headers' | 'socket' | 'httpVersion'>,
  caller: Caller,
) => OperatorAccess;

/**
 * Any proxy may add one of these; a call with one did not come directly. Clients that call directly
 * send the two `X-` headers that are left out, and no other.
 */
const FORWARDING_HEADERS =
  /^(x-(?!(api-key|requested-with)$).+|forwarded.*|via|(.+-)?client-ip|cdn-loop|(akamai|cdn|cf|cloudfront|fastly|fly|incap|ngrok|proxy|tailscale|true)-.+)$/;

const NOT_OPERATOR = {
  proxied:
    'The server is set up to stand behind a proxy, where every call comes from loopback: only --local-token proves an operator.',
  remote: 'The call does not come from the machine of the server, and no --local-token is set.',
  forwarded: 'A proxy forwarded the call, and no --local-token is set.',
  host: 'The call names a host that is not the loopback address.',
  origin: 'A page of another origin makes the call, and no --local-token is set.',
} as const;

/**
 * The operator sees all users. With `--local-token` every authenticated caller has shown it. Without,
 * the operator calls directly over loopback. A proxy that adds no header shows in its HTTP/1.0 or its
 * `Connection: close`; a page that has rebound its name to loopback, in its `Host`. A page of another
 * origin may call where `--enable-cors-header` is given; it is no operator.
 */
export function createOperatorCheck({
  localToken,
  proxy,
}: Pick<Config, 'localToken' | 'proxy'>): OperatorCheck {
  const isBehindProxy =
    proxy.trustedProxies.length > 0 ||
    proxy.publicUrl !== undefined ||
    proxy.allowedHosts.length > 0;
  return (request) => {
    if (localToken !== undefined) return { isOperator: true, by: 'token' };
    const reason = isBehindProxy ? NOT_OPERATOR.proxied : refusalOf(request);
    return reason === undefined
      ? { isOperator: true, by: 'loopback' }
      : { isOperator: false, reason };
  };
}

function refusalOf({
  headers,
  socket,
  httpVersion,
}: Pick<IncomingMessage, 'headers' | 'socket' | 'httpVersion'>): string | undefined {
  if (!isLoopbackAddress(socket.remoteAddress)) return NOT_OPERATOR.remote;
  const isForwarded = Object.keys(headers).some((name) => FORWARDING_HEADERS.test(name));
  if (isForwarded || httpVersion === '1.0' || headers.connection === 'close')
    return NOT_OPERATOR.forwarded;
  const hostname = readHost(headers.host ?? '')?.hostname ?? '';
  if (!LOOPBACK_HOST.test(hostname)) return NOT_OPERATOR.host;
  return isOwnPage(headers) ? undefined : NOT_OPERATOR.origin;
}

/** A browser sends the origin of a page with all that the page may read; `null` is any page in a sandbox. */
function isOwnPage({ origin, host }: IncomingMessage['headers']): boolean {
  return origin === undefined || origin === `http://${host}`;
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function isLoopbackAddress(address = ''): boolean {
  return /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === '::1';
}
