import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { AllowedHost } from '../config/proxy.ts';
import { isBrowser } from './calling-client.ts';

/**
 * The hosts that calls may name beside those that the operator allows: names of loopback; also
 * names that lead to no public address; any.
 */
export type OwnHosts = 'loopback' | 'private' | 'any';

export type HostOptions = {
  readonly ownHosts: OwnHosts;
  readonly allowedHosts: readonly AllowedHost[];
  readonly publicHostname: string | undefined;
};

/** A host without a port may be on either port: the scheme outside is not known here. */
const DEFAULT_PORTS: ReadonlySet<string> = new Set(['80', '443']);

/** The names of this machine for its programs, and for those in containers of Docker Desktop. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set([
  'localhost',
  '[::1]',
  'host.docker.internal',
  'gateway.docker.internal',
]);

/**
 * Programs reach loopback by this address, and scripts name it. Browsers send no fetch metadata to
 * it, so calls of a foreign page by this name could not be told from those of our own pages.
 */
const ANY_ADDRESS = '0.0.0.0';

/** Names below these are never in public DNS (RFC 6761, RFC 6762, RFC 8375; `svc` is of clusters). */
const PRIVATE_SUFFIX = /\.(localhost|local|lan|home\.arpa|internal|svc)$/;

/**
 * Returns the check that closes DNS rebinding: with it a page of another site could call by its own
 * name.
 */
export function createHostCheck({
  ownHosts,
  allowedHosts,
  publicHostname,
}: HostOptions): (host: URL, request: IncomingMessage) => boolean {
  const machineName = hostname().toLowerCase();
  const isPrivate = (name: string): boolean =>
    !name.includes('.') || name === machineName || isAddress(name) || PRIVATE_SUFFIX.test(name);
  return (host, request) => {
    const name = host.hostname.replace(/\.$/, '');
    return (
      ownHosts === 'any' ||
      isLoopbackName(name) ||
      (name === ANY_ADDRESS && !isBrowser(request)) ||
      name === publicHostname ||
      allowedHosts.some((allowed) => isAllowed(allowed, name, host.port)) ||
      (ownHosts === 'private' && isPrivate(name))
    );
  };
}

function isAllowed(
  { hostname: allowedName, port: allowedPort, hasSubdomains }: AllowedHost,
  name: string,
  port: string,
): boolean {
  const isAtPort = port === '' ? DEFAULT_PORTS.has(allowedPort ?? '') : allowedPort === port;
  if (allowedPort !== undefined && !isAtPort) return false;
  return name === allowedName || (hasSubdomains && name.endsWith(`.${allowedName}`));
}

function isLoopbackName(name: string): boolean {
  const isReserved = LOOPBACK_NAMES.has(name) || name.endsWith('.localhost');
  return isReserved || /^127\.\d+\.\d+\.\d+$/.test(name);
}

function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
