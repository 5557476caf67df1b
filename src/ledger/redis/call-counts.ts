import type { CallCount, CallStore } from '../ledger.ts';
import type { LedgerConnection } from './connection.ts';
import { Table, newToken } from './table.ts';

/** Counts of v1 calls by client. */
export function callCountStore(connection: LedgerConnection): CallStore {
  const table = new Table(connection, 'calls');
  const lua = connection.scripts('calls', { add, expire });
  const valuesOf = (row: CallCount) => table.names.map((name) => row[name]);
  return {
    async add(rows) {
      if (rows.length > 0) await lua.add(newToken(), ...rows.flatMap(valuesOf));
    },
    list: () => table.listed('calls:last'),
    expire: (lastBeforeMs) => lua.expire(lastBeforeMs),
  };
}

// The arguments after the token are the values of each row, in the order of `CALL_COUNT_COLUMNS`.
const add = `
if not once(ARGV[1]) then return end
for i = 2, #ARGV, 7 do
  local user, agent, client, route, count, first, last = unpack(ARGV, i, i + 6)
  local id = joinKey(user, joinKey(agent, joinKey(client, route)))
  local key = P .. 'call:' .. id
  local from, to = unpack(call('HMGET', key, 'firstAtMs', 'lastAtMs'))
  call('HINCRBY', key, 'count', count)
  call('HSET', key, 'user', user, 'agent', agent, 'clientId', client, 'route', route,
    'firstAtMs', math.min(first, from or first), 'lastAtMs', math.max(last, to or last))
  call('ZADD', P .. 'calls:last', 'GT', last, id)
end`;

const expire = `dropBefore('calls:last', 'call', ARGV[1])`;
