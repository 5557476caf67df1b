import { MODEL_CALL_COLUMNS, REPLAY_COLUMNS } from '../columns.ts';
import type { ModelCallRow, ModelCallStore, ReplayRow, ReplayStore } from '../ledger.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { MODEL_CALL_SCRIPTS, REPLAY_SCRIPTS } from './models-scripts.ts';
import { createTable, newToken } from './table.ts';

const NO_ANSWER = { status: null, contentType: null, body: null } as const;

/** The idempotency keys of the model router and their stored answers. */
export function replayStore(connection: LedgerConnection): ReplayStore {
  const table = createTable<ReplayRow>(connection, 'replay', REPLAY_COLUMNS);
  const lua = connection.scripts('replays', REPLAY_SCRIPTS);
  const { ask, read, write, redis, prefix } = connection;
  return {
    async reserve({ scope, key, fingerprint, requestId, atMs }, freeBeforeMs) {
      const row = { scope, key, fingerprint, requestId, atMs, state: 'reserved', ...NO_ANSWER };
      const fields = table.fields(row as ReplayRow);
      const { names } = table;
      return table.decode(
        await ask(() =>
          lua.reserve(
            joinKey(scope, key),
            newToken(),
            freeBeforeMs,
            names.length,
            ...names,
            ...fields,
          ),
        ),
      );
    },
    record({ scope, key, requestId }, { atMs, status, contentType, body }) {
      const fields = table.fields({ state: 'recorded', atMs, status, contentType, body });
      return write(() => lua.settle(joinKey(scope, key), requestId, ...fields));
    },
    consume({ scope, key, requestId }, atMs) {
      const fields = table.fields({ state: 'consumed', atMs, ...NO_ANSWER });
      return write(() => lua.settle(joinKey(scope, key), requestId, ...fields));
    },
    release: ({ scope, key, requestId }) =>
      write(() => lua.release(joinKey(scope, key), requestId)),
    expire: (beforeMs) => write(() => lua.expire(beforeMs)),
    recordedBytes: async () => Number((await read(() => redis.get(`${prefix}replays:bytes`))) ?? 0),
  };
}

/** The audit records of the model router. */
export function modelCallStore(connection: LedgerConnection): ModelCallStore {
  const table = createTable<ModelCallRow>(connection, 'model-call', MODEL_CALL_COLUMNS);
  const lua = connection.scripts('model_calls', MODEL_CALL_SCRIPTS);
  const { read, write, redis, prefix } = connection;
  return {
    insert: (row) => write(() => lua.insert(row.requestId, newToken(), ...table.fields(row))),
    amend: (requestId, { errorType, chargedCents }) =>
      write(() => lua.amend(requestId, ...table.fields({ errorType, chargedCents }))),
    get: table.get,
    chargedCents: async (workspace) =>
      Number((await read(() => redis.hget(`${prefix}model-calls:charged`, workspace))) ?? 0),
    expire: (beforeMs) => write(() => lua.expire(beforeMs)),
  };
}
