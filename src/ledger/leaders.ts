import type { LeaseKeys } from '../lib/leases.ts';

/** The leases of prompts: replication elects the leader of each. */
export function promptLeases(prefix: string): LeaseKeys {
  return { leases: `${prefix}leases`, holders: `${prefix}leaders`, counter: `${prefix}fence` };
}

/**
 * Lua: the ledger in Redis refuses the writes of a process that does not lead the prompt. A write
 * without a token is allowed when the prompt has no leader. Expects `P`, the prefix of all keys.
 */
export const MAY_WRITE_LUA = `
local function mayWrite(key, token)
  return (redis.call('HGET', P .. 'leaders', key) or '') == token
end
`;
