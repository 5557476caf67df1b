import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, type LookupFunction, isIP } from 'node:net';

/**
 * The reach of an address: the whole internet, or only machines of some network (this machine
 * included). `forbidden`: no link may lead there, even when the operator names it.
 */
export type AddressScope = 'public' | 'private' | 'forbidden';

/**
 * The single addresses are metadata services of cloud providers: they return secrets of the
 * machine.
 */
const SUBNETS: readonly (readonly [AddressScope, string, number])[] = [
  ['forbidden', '169.254.0.0', 16],
  ['forbidden', 'fe80::', 10],
  ['forbidden', 'fd00:ec2::254', 128],
  ['forbidden', '100.100.100.200', 32],
  ['forbidden', '168.63.129.16', 32],
  ['forbidden', '0.0.0.0', 8],
  ['forbidden', '192.0.0.0', 24],
  ['forbidden', '198.18.0.0', 15],
  ['forbidden', '224.0.0.0', 3],
  ['forbidden', '::', 128],
  ['forbidden', 'ff00::', 8],
  // IPv6 forms that carry an IPv4 address for a gateway that unpacks it.
  ['forbidden', '64:ff9b::', 96],
  ['forbidden', '64:ff9b:1::', 48],
  ['forbidden', '2001::', 32],
  ['forbidden', '2002::', 16],
  ['forbidden', '::ffff:0:0:0', 96],
  ['private', '127.0.0.0', 8],
  ['private', '::1', 128],
  ['forbidden', '::', 96],
  ['private', '10.0.0.0', 8],
  ['private', '172.16.0.0', 12],
  ['private', '192.168.0.0', 16],
  ['private', '100.64.0.0', 10],
  ['private', 'fc00::', 7],
  ['private', 'fec0::', 10],
  // Documentation ranges and discard ranges.
  ['forbidden', '192.0.2.0', 24],
  ['forbidden', '198.51.100.0', 24],
  ['forbidden', '203.0.113.0', 24],
  ['forbidden', '192.88.99.0', 24],
  ['forbidden', '2001:db8::', 32],
  ['forbidden', '100::', 64],
];

const BLOCK_LISTS = SUBNETS.map(([scope, address, bits]) => {
  const list = new BlockList();
  list.addSubnet(address, bits, familyOf(address));
  return { reach: scope, list };
});

/** IPv4 addresses written as IPv6 (`::ffff:10.0.0.1`) count as what they are. */
export function addressScope(address: string): AddressScope {
  const family = familyOf(address);
  return BLOCK_LISTS.find(({ list }) => list.check(address, family))?.reach ?? 'public';
}

/** A name or an address that is refused for where it leads. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/**
 * Resolves names to addresses of allowed reach only. It is the lookup of the connection itself, so
 * that a name cannot lead elsewhere between a check and the connection (DNS rebinding).
 */
export function guardedLookup(
  allowed: ReadonlySet<AddressScope>,
  resolve: typeof lookup = lookup,
): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error) return done(error, '', 0);
      const usable = addresses.filter(({ address }) => allowed.has(addressScope(address)));
      const [first] = usable;
      if (!first) {
        return done(new AddressRefused(`${hostname} is in a private network`), '', 0);
      }
      if (options.all === true) return done(null, usable);
      done(null, first.address, first.family);
    });
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
