import type { IncomingMessage } from 'node:http';
import type { Config } from '../config/config.ts';
import { readHost } from '../http/host-header.ts';
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

/** Any proxy may add one of these; a call with one did not come directly. */
const FORWARDING_HEADERS =
  /^(forwarded|via|x-forwarded(-.+)?|x-real-ip|x-client-ip|x-original-.+|x-cluster-client-ip|true-client-ip|cf-.+|fly-.+)$/;

const NOT_OPERATOR = {
  proxied:
    'The server is set up to stand behind a proxy, where every call comes from loopback: only --local-token proves an operator.',
  remote: 'The call does not come from the machine of the server, and no --local-token is set.',
  forwarded: 'A proxy forwarded the call, and no --local-token is set.',
  host: 'The call names a host that is not the loopback address.',
} as const;

/**
 * The operator sees all users. With `--local-token` every authenticated caller has shown it. Without,
 * the operator calls directly over loopback. A proxy that adds no header shows in its HTTP/1.0 or its
 * `Connection: close`; a page that has rebound its name to loopback, in its `Host`.
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
  return LOOPBACK_HOST.test(hostname) ? undefined : NOT_OPERATOR.host;
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function isLoopbackAddress(address = ''): boolean {
  return /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === '::1';
}
