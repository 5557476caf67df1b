import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, type LookupFunction, isIP } from 'node:net';
import { promisify } from 'node:util';

/**
 * How near a place is to this process: from everywhere, from our network, from this machine only.
 * A link may lead as near as its giver is itself, no nearer. Nothing may lead to `OUT_OF_BOUNDS`.
 */
export type Nearness = number;

export const PUBLIC: Nearness = 0;
const PRIVATE: Nearness = 1;
const LOOPBACK: Nearness = 2;
const OUT_OF_BOUNDS: Nearness = 3;

/** Single addresses are hosts that tell cloud machines their secrets. */
const SUBNETS: readonly (readonly [Nearness, string, number])[] = [
  [OUT_OF_BOUNDS, '169.254.0.0', 16],
  [OUT_OF_BOUNDS, 'fe80::', 10],
  [OUT_OF_BOUNDS, 'fd00:ec2::254', 128],
  [OUT_OF_BOUNDS, '100.100.100.200', 32],
  [OUT_OF_BOUNDS, '168.63.129.16', 32],
  [OUT_OF_BOUNDS, '0.0.0.0', 8],
  [OUT_OF_BOUNDS, '192.0.0.0', 24],
  [OUT_OF_BOUNDS, '198.18.0.0', 15],
  [OUT_OF_BOUNDS, '224.0.0.0', 3],
  [OUT_OF_BOUNDS, '::', 128],
  [OUT_OF_BOUNDS, 'ff00::', 8],
  // Forms of IPv6 that carry an IPv4 address to somebody who unpacks it.
  [OUT_OF_BOUNDS, '64:ff9b::', 96],
  [OUT_OF_BOUNDS, '64:ff9b:1::', 48],
  [OUT_OF_BOUNDS, '2001::', 32],
  [OUT_OF_BOUNDS, '2002::', 16],
  [LOOPBACK, '127.0.0.0', 8],
  [LOOPBACK, '::1', 128],
  [PRIVATE, '10.0.0.0', 8],
  [PRIVATE, '172.16.0.0', 12],
  [PRIVATE, '192.168.0.0', 16],
  [PRIVATE, '100.64.0.0', 10],
  [PRIVATE, 'fc00::', 7],
  [PRIVATE, 'fec0::', 10],
];

const LISTS = SUBNETS.map(([nearness, address, bits]) => {
  const list = new BlockList();
  list.addSubnet(address, bits, familyOf(address));
  return { nearness, list };
});

/** IPv4 addresses in IPv6 clothes are known as well. */
export function nearnessOf(address: string): Nearness {
  const family = familyOf(address);
  return LISTS.find(({ list }) => list.check(address, family))?.nearness ?? PUBLIC;
}

/** Of a host as URLs write it; one with several addresses is as near as its nearest. */
export async function nearnessOfHost(hostname: string): Promise<Nearness> {
  const host = hostname.replaceAll(/[[\]]/g, '');
  if (isIP(host) !== 0) return nearnessOf(host);
  try {
    const found = await promisify(lookup)(host, { all: true });
    return Math.max(PUBLIC, ...found.map(({ address }) => nearnessOf(address)));
  } catch {
    return PUBLIC;
  }
}

/** Whether a link of somebody so near may lead to such a place. */
export function mayLead(from: Nearness, to: Nearness): boolean {
  return to <= from && to < OUT_OF_BOUNDS;
}

/** Resolves names to allowed addresses only, so that the one that was checked is the one connected to. */
export function guardedLookup(from: () => Nearness): LookupFunction {
  return (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) return done(error, '', 0);
      const allowed = found.filter(({ address }) => mayLead(from(), nearnessOf(address)));
      const [first] = allowed;
      if (!first) return done(new Error(`${hostname} is no place for a link`), '', 0);
      if (options.all === true) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
