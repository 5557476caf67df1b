import { CALL_COUNT_COLUMNS } from '../columns.ts';
import type { CallCount, CallStore } from '../ledger.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { createTable, newToken } from './table.ts';

/** Counts of v1 calls by client. */
export function callCountStore(connection: LedgerConnection): CallStore {
  const table = createTable<CallCount>(connection, 'call', CALL_COUNT_COLUMNS);
  const lua = connection.scripts('calls', { add, expire });
  const { of, all, everywhere } = connection;
  return {
    add(rows) {
      const places = rows.map(({ user }) => of(user));
      return everywhere(async (prefix) => {
        const own = rows.filter((_, i) => places[i] === prefix);
        if (own.length > 0) await lua.add(prefix, newToken(), ...own.flatMap(argsOf));
      });
    },
    list: async () =>
      (await all((prefix) => table.listed(prefix, 'calls:last'))).flat().toSorted(byClient),
    expire: (lastBeforeMs) => everywhere((prefix) => lua.expire(prefix, lastBeforeMs)),
  };
}

function argsOf(row: CallCount): (string | number)[] {
  const { user, agent, clientId, route, count, firstAtMs, lastAtMs } = row;
  const id = joinKey(user, joinKey(agent, joinKey(clientId, route)));
  return [id, user, agent, clientId, route, count, firstAtMs, lastAtMs];
}

/** The order of all lists of counts. */
function byClient(a: CallCount, b: CallCount): number {
  const order = ({ user, agent, route, clientId }: CallCount) =>
    [user, agent, route, clientId].join('\0');
  return order(a) < order(b) ? -1 : 1;
}

const add = `
if not once(ARGV[1]) then return end
for i = 2, #ARGV, 8 do
  local id, key = ARGV[i], P .. 'call:' .. ARGV[i]
  call('HSET', key, 'user', ARGV[i + 1], 'agent', ARGV[i + 2], 'clientId', ARGV[i + 3],
    'route', ARGV[i + 4])
  call('HINCRBY', key, 'count', ARGV[i + 5])
  local held = call('HMGET', key, 'firstAtMs', 'lastAtMs')
  if not held[1] or tonumber(ARGV[i + 6]) < tonumber(held[1]) then
    call('HSET', key, 'firstAtMs', ARGV[i + 6])
  end
  if not held[2] or tonumber(ARGV[i + 7]) > tonumber(held[2]) then
    call('HSET', key, 'lastAtMs', ARGV[i + 7])
  end
  call('ZADD', P .. 'calls:last', 'GT', ARGV[i + 7], id)
end`;

const expire = `dropBefore('calls:last', 'call', ARGV[1])`;
