import type { ModelCallStore, ReplayStore } from '../ledger.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { Table, newToken } from './table.ts';

/** The idempotency keys of the model router and their stored answers. */
export function replayStore(connection: LedgerConnection): ReplayStore {
  const table = new Table(connection, 'replays');
  const lua = connection.scripts('replays', REPLAY_SCRIPTS);
  return {
    async reserve({ scope, key, fingerprint, requestId, atMs }, freeBeforeMs) {
      const row = { scope, key, fingerprint, requestId, atMs, state: 'reserved' } as const;
      const args = [...table.names, ...table.fields(row)];
      const head = [joinKey(scope, key), newToken(), freeBeforeMs, table.names.length];
      return table.decode(await lua.reserve(...head, ...args));
    },
    settle: async ({ scope, key, requestId }, end) =>
      lua.settle(joinKey(scope, key), requestId, ...table.fields(end)),
    release: ({ scope, key, requestId }) => lua.release(joinKey(scope, key), requestId),
    expire: (beforeMs) => lua.expire(beforeMs),
    recordedBytes: () => connection.number('replays:bytes'),
  };
}

/** The audit records of the model router. */
export function modelCallStore(connection: LedgerConnection): ModelCallStore {
  const table = new Table(connection, 'modelCalls');
  const lua = connection.scripts('model_calls', MODEL_CALL_SCRIPTS);
  const { prefix, read, redis } = connection;
  return {
    insert: async (row) => lua.insert(row.requestId, newToken(), ...table.fields(row)),
    amend: async (requestId, { errorType, chargedCents }) =>
      lua.amend(requestId, ...table.fields({ errorType, chargedCents })),
    get: (id) => table.get(id),
    chargedCents: async (workspace) =>
      Number((await read(() => redis.hget(`${prefix}model-calls:charged`, workspace))) ?? 0),
    expire: (beforeMs) => lua.expire(beforeMs),
  };
}

const REPLAYS = `
local replays = rowsOf('replay', {'atMs', 'state'},
  function(put, id, at) put('replays:age', at, id) end,
  function(sign, id, _, state)
    local bytes = state == 'recorded' and call('HSTRLEN', P .. 'replay:' .. id, 'body') or 0
    if bytes ~= 0 then call('INCRBY', P .. 'replays:bytes', sign * bytes) end
  end)
`;

/** The scripts of the replay store. They change nothing for a request that no longer holds the key. */
const REPLAY_SCRIPTS = {
  reserve: `${REPLAYS}
local id, token, before, n = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local holder, at = replays.values(id, 'token', 'atMs')
if holder == token then return false end
if at and tonumber(at) >= before then return call('HMGET', replays.at(id), unpack(ARGV, 5, 4 + n)) end
replays.remove(id)
replays.change(id, 5 + n)
call('HSET', replays.at(id), 'token', token)
return false`,
  settle: `${REPLAYS}
if replays.values(ARGV[1], 'requestId') == ARGV[2] then replays.change(ARGV[1], 3) end`,
  release: `${REPLAYS}
if replays.values(ARGV[1], 'requestId') == ARGV[2] then replays.remove(ARGV[1]) end`,
  expire: `${REPLAYS}
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'replays:age', '-inf', '(' .. ARGV[1])) do
  replays.remove(id)
end`,
};

const CALLS = `
local calls = rowsOf('model-call', {'endedAtMs', 'chargedCents', 'workspace'},
  function(put, id, ended, cents) if cents == '0' then put('model-calls:free', ended, id) end end,
  function(sign, _, _, cents, workspace)
    if cents ~= '0' then call('HINCRBY', P .. 'model-calls:charged', workspace, sign * cents) end
  end)
`;

/** The scripts of the store of audit records. */
const MODEL_CALL_SCRIPTS = {
  insert: `${CALLS}
local id, token = ARGV[1], ARGV[2]
if call('EXISTS', calls.at(id)) == 1 then return calls.values(id, 'token') ~= token and TAKEN end
calls.change(id, 3)
call('HSET', calls.at(id), 'token', token)`,
  amend: `${CALLS}
if calls.values(ARGV[1], 'workspace') then calls.change(ARGV[1], 2) end`,
  expire: `dropBefore('model-calls:free', 'model-call', ARGV[1])`,
};
