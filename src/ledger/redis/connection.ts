import { type Scripts, defineScripts } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';

/** Joins two parts of a key. Clients choose the parts, so the length of the first part comes before it. */
export function joinKey(first: string, second: string): string {
  return `${Buffer.byteLength(first)}:${first}:${second}`;
}

/**
 * The ids in the members of an index whose scores may be equal. There a member begins with a sequence number of 16
 * digits and a colon.
 */
export function idsOf(members: readonly string[]): string[] {
  return members.map((member) => member.slice(17));
}

/** The connection of a ledger. Commands run in the order in which they are sent, awaited or not. */
export class LedgerConnection {
  readonly redis: Redis;
  /** Each key begins with this. */
  readonly prefix: string;
  /** Sends at once; an error gets the message that the ledger could not be read, or written. */
  readonly read = <T>(send: () => Promise<T>): Promise<T> => withReason('read', send);
  readonly write = async (send: () => Promise<unknown>): Promise<void> =>
    void (await withReason('written', send));

  constructor(redis: Redis, prefix: string) {
    this.redis = redis;
    this.prefix = prefix;
  }

  /** A stored number; 0 when the key does not exist. */
  async number(key: string): Promise<number> {
    return Number(await this.read(() => this.redis.get(`${this.prefix}${key}`)));
  }

  /** Defines scripts, which run wholly or not at all. Texts in a reply are Buffers. */
  scripts<Name extends string>(
    store: string,
    lua: { readonly [name in Name]: string },
    done: 'read' | 'written' = 'written',
  ): Scripts<Name> {
    return defineScripts(this.redis, lua, {
      namespace: store,
      prefix: this.prefix,
      prelude: PRELUDE,
      reply: 'bytes',
      send: (call) => withReason(done, call),
    });
  }
}

/** Passes on only the message of an ioredis error, because the error contains the command with all arguments. */
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
 * The prelude of every script. `set` stores the fields of a row from the arguments that `Table.fields` makes. `rowsOf`
 * returns the functions for the rows of a kind. `dropBefore` removes the rows of a kind whose score in an index is
 * lower. `once` is false for a command that is sent again after a lost connection, if Redis ran it before.
 */
const PRELUDE = `
local P = KEYS[1]
local call = redis.call
local TAKEN = redis.error_reply('TAKEN another row has this id')
local function joinKey(a, b) return #a .. ':' .. a .. ':' .. b end
local function member(seq, id) return string.format('%016d', seq) .. ':' .. id end
local function nextSeq() return call('INCR', P .. 'seq') end
local function set(key, i)
  local n = tonumber(ARGV[i])
  if n > 0 then call('HSET', key, unpack(ARGV, i + 1, i + 2 * n)) end
  if #ARGV > i + 2 * n then call('HDEL', key, unpack(ARGV, i + 2 * n + 1)) end
end
-- indexes(put, id, ...) gets the fields of a row, and calls put(index, score, member) for each index of the row.
-- count(sign, id, ...) gets the fields too, and adds the row to sums (sign 1) or subtracts it (sign -1).
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
    call('HSET', rows.at(id), 'seq', nextSeq(), 'token', token)
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
