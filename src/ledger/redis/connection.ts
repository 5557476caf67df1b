import { defineScripts } from '../../redis/redis-scripts.ts';
import type { RedisPartitions } from '../../redis/redis-partitions.ts';
import type { Redis } from '../../redis/redis.ts';

export type LedgerConnection = ReturnType<typeof createLedgerConnection>;

/** Joins two parts of a key. Clients choose the parts: the length says where the first one ends. */
export function joinKey(first: string, second: string): string {
  return `${Buffer.byteLength(first)}:${first}:${second}`;
}

/**
 * The ids in index members: where scores may tie, a member begins with a sequence number of 16
 * digits and a colon.
 */
export function idsOf(members: readonly string[]): string[] {
  return members.map((member) => member.slice(17));
}

/** The connection of a ledger. Commands run in the order they are sent, awaited or not. */
export function createLedgerConnection(
  redis: Redis,
  { users, indexOf }: Pick<RedisPartitions, 'users' | 'indexOf'>,
) {
  const prefixes = users.map(({ prefix }) => prefix);
  const all = <Reply>(ask: (prefix: string) => Promise<Reply>): Promise<Reply[]> =>
    Promise.all(prefixes.map(ask));
  return {
    redis,
    /** With what the keys of each partition begin. */
    prefixes,
    /** With what those of a user begin. */
    of: (user: string): string => prefixes[indexOf(user)] as string,
    /** Asks all partitions. */
    all,
    everywhere: async (act: (prefix: string) => Promise<void>): Promise<void> =>
      void (await all(act)),
    sum: async (ask: (prefix: string) => Promise<number>): Promise<number> =>
      (await all(ask)).reduce((total, one) => total + one, 0),
    /** Sends at once; an error says that the ledger could not be read, or written. */
    read: <T>(send: () => Promise<T>): Promise<T> => withReason('read', send),
    write: async (send: () => Promise<unknown>): Promise<void> =>
      void (await withReason('written', send)),
    /** A stored number; 0 when it is absent. */
    number: async (prefix: string, key: string): Promise<number> =>
      Number(await withReason('read', () => redis.get(`${prefix}${key}`))),
    /**
     * Scripts, which run whole or not at all; each call names the partition first. Texts of a reply are
     * Buffers.
     */
    scripts: <Name extends string>(
      store: string,
      lua: { readonly [name in Name]: string },
      done: 'read' | 'written' = 'written',
    ) =>
      defineScripts(redis, lua, {
        namespace: store,
        prelude: PRELUDE,
        reply: 'bytes',
        send: (call) => withReason(done, call),
      }),
  };
}

/** An error of ioredis contains its command with all arguments: only its message is passed on. */
async function withReason<T>(done: 'read' | 'written', send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    throw failure(done, error instanceof Error ? error.message : String(error));
  }
}

export function failure(done: 'read' | 'written', reason: string): Error {
  const cause = new Error(reason);
  return new Error(`the ledger could not be ${done}: ${reason}`, { cause });
}

/**
 * The prelude of every script. `set` stores the fields of a row from the arguments that `Table.fields`
 * makes; `rowsOf` gives the functions for the rows of a kind; `dropBefore` removes the rows of a kind
 * that have a lower score in an index that holds their ids; `once` is false for a command that Redis
 * ran before the connection broke and that is now sent again.
 */
const PRELUDE = `
local P = KEYS[1]
local call = redis.call
local TAKEN = redis.error_reply('TAKEN another row has this id')
local function own(a, b) return #a .. ':' .. a .. ':' .. b end
local function member(seq, id) return string.format('%016d', seq) .. ':' .. id end
local function next() return call('INCR', P .. 'seq') end
local function set(key, i)
  local n = tonumber(ARGV[i])
  if n > 0 then call('HSET', key, unpack(ARGV, i + 1, i + 2 * n)) end
  if #ARGV > i + 2 * n then call('HDEL', key, unpack(ARGV, i + 2 * n + 1)) end
end
-- indexes(put, id, ...) gets the fields of a row, and calls put(index, score, member) for each of its indexes.
-- count(sign, id, ...) adds a row to sums, or takes it out.
local function rowsOf(kind, fields, indexes, count)
  local rows = {}
  function rows.at(id) return P .. kind .. ':' .. id end
  function rows.values(id, ...) return unpack(call('HMGET', rows.at(id), ...)) end
  local function each(id, sign, put)
    local values = call('HMGET', rows.at(id), unpack(fields))
    if not values[1] then return end
    indexes(put, id, unpack(values))
    if count then count(sign, id, unpack(values)) end
  end
  function rows.list(id)
    each(id, 1, function(index, score, member) call('ZADD', P .. index, score, member) end)
  end
  function rows.unlist(id)
    each(id, -1, function(index, _, member) call('ZREM', P .. index, member) end)
  end
  function rows.insert(id, token, i)
    set(rows.at(id), i)
    call('HSET', rows.at(id), 'seq', next(), 'token', token)
    rows.list(id)
  end
  function rows.change(id, i)
    rows.unlist(id)
    set(rows.at(id), i)
    rows.list(id)
  end
  function rows.remove(id)
    rows.unlist(id)
    call('UNLINK', rows.at(id))
  end
  return rows
end
local function dropBefore(index, kind, score)
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. index, '-inf', '(' .. score)) do
    call('UNLINK', P .. kind .. ':' .. id)
    call('ZREM', P .. index, id)
  end
end
local function once(token) return call('SET', P .. 'once:' .. token, 1, 'NX', 'EX', 3600) end
`;
