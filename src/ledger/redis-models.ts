import type { ModelCallRow, ModelCallStore, ReplayRow, ReplayStore } from './ledger.ts';
import { type Link, own } from './redis-link.ts';
import { MODEL_CALL_SCRIPTS, REPLAY_SCRIPTS } from './redis-models-lua.ts';
import { type Columns, createTable, token } from './redis-table.ts';

const REPLAY: Columns<ReplayRow> = {
  scope: 'text',
  key: 'text',
  fingerprint: 'text',
  requestId: 'text',
  state: 'text',
  atMs: 'number',
  status: 'number',
  contentType: 'text',
  body: 'bytes',
};

const CALL: Columns<ModelCallRow> = {
  requestId: 'text',
  workspace: 'text',
  user: 'text',
  model: 'text',
  startedAtMs: 'number',
  endedAtMs: 'number',
  status: 'number',
  errorType: 'text',
  chargedCents: 'number',
  replayed: 'flag',
};

const NO_ANSWER = { status: null, contentType: null, body: null } as const;

/** The idempotency keys of the model router and the answers kept for them. */
export function replayStore(link: Link): ReplayStore {
  const table = createTable<ReplayRow>(link, 'replay', REPLAY);
  const lua = link.scripts('replays', REPLAY_SCRIPTS);
  const { ask, read, write, redis, prefix } = link;
  return {
    async reserve({ scope, key, fingerprint, requestId, atMs }, freeBeforeMs) {
      const row = { scope, key, fingerprint, requestId, atMs, state: 'reserved', ...NO_ANSWER };
      const fields = table.fields(row as ReplayRow);
      const { names } = table;
      return table.decode(
        await ask(() =>
          lua.reserve(own(scope, key), token(), freeBeforeMs, names.length, ...names, ...fields),
        ),
      );
    },
    record({ scope, key, requestId }, { atMs, status, contentType, body }) {
      const fields = table.fields({ state: 'recorded', atMs, status, contentType, body });
      return write(() => lua.settle(own(scope, key), requestId, ...fields));
    },
    consume({ scope, key, requestId }, atMs) {
      const fields = table.fields({ state: 'consumed', atMs, ...NO_ANSWER });
      return write(() => lua.settle(own(scope, key), requestId, ...fields));
    },
    release: ({ scope, key, requestId }) => write(() => lua.release(own(scope, key), requestId)),
    expire: (beforeMs) => write(() => lua.expire(beforeMs)),
    recordedBytes: async () => Number((await read(() => redis.get(`${prefix}replays:bytes`))) ?? 0),
  };
}

/** The audit records of the model router. */
export function modelCallStore(link: Link): ModelCallStore {
  const table = createTable<ModelCallRow>(link, 'model-call', CALL);
  const lua = link.scripts('model_calls', MODEL_CALL_SCRIPTS);
  const { read, write, redis, prefix } = link;
  return {
    insert: (row) => write(() => lua.insert(row.requestId, token(), ...table.fields(row))),
    amend: (requestId, { errorType, chargedCents }) =>
      write(() => lua.amend(requestId, ...table.fields({ errorType, chargedCents }))),
    get: table.get,
    chargedCents: async (workspace) =>
      Number((await read(() => redis.hget(`${prefix}model-calls:charged`, workspace))) ?? 0),
    expire: (beforeMs) => write(() => lua.expire(beforeMs)),
  };
}
