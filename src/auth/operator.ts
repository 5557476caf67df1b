import type { RequestHead } from '../http/file-headers.ts';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../config/config.ts';
import { readHost } from '../http/public-address.ts';

type OperatorRequest = RequestHead & { readonly socket: Socket; readonly httpVersion: string };

/** Returns why the authenticated caller of a request is not the operator; `null` for the operator. */
export type OperatorCheck = (request: OperatorRequest) => string | null;

/**
 * Headers that proxies add: a call with one of them did not come directly. Two `X-` headers are
 * left out, since clients that call directly send them.
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
 * Checks if a caller is the operator, who sees all users. With `--local-token` every authenticated
 * caller has shown the token. Without it, the operator calls directly over loopback. A proxy that
 * adds no header is recognized by its HTTP/1.0 or its `Connection: close`, and a page that has
 * rebound its name to loopback by its `Host`. With `--enable-cors-header` a page of another origin
 * may call, but it is not the operator.
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
    if (localToken !== undefined) return null;
    return isBehindProxy ? NOT_OPERATOR.proxied : refusalOf(request);
  };
}

function refusalOf({ headers, socket, httpVersion }: OperatorRequest): string | null {
  if (!isLoopbackAddress(socket.remoteAddress)) return NOT_OPERATOR.remote;
  const isForwarded = Object.keys(headers).some((name) => FORWARDING_HEADERS.test(name));
  if (isForwarded || httpVersion === '1.0' || headers.connection === 'close')
    return NOT_OPERATOR.forwarded;
  const hostname = readHost(headers.host ?? '')?.hostname ?? '';
  if (!LOOPBACK_HOST.test(hostname)) return NOT_OPERATOR.host;
  return isOwnPage(headers) ? null : NOT_OPERATOR.origin;
}

/**
 * True for a page of this server. A browser sends an origin with each call of a page; `null` may be
 * any page in a sandbox.
 */
function isOwnPage({ origin, host }: IncomingMessage['headers']): boolean {
  return origin === undefined || origin === `http://${host}`;
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function isLoopbackAddress(address = ''): boolean {
  return /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === '::1';
}
