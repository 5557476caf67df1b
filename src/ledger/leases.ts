import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Scripts, defineScripts } from '../redis/redis-scripts.ts';
import type { Redis } from '../redis/redis.ts';

/** The keys of one kind of lease, without the prefix of all keys. */
type LeaseKeys = {
  /** A sorted set: the time at which each lease ends, in milliseconds. */
  readonly leases: string;
  /** A hash: the last token of each lease. */
  readonly holders: string;
  /** A counter, so that no token is used twice. */
  readonly counter: string;
};

/** The leases of prompts: the process that holds one is the leader of the prompt. */
export const PROMPT_LEASES = { leases: 'leases', holders: 'leaders', counter: 'fence' } as const;

/**
 * Lua functions for leases. A holder may write while its token is the last one: the end of the lease does not stop
 * it, but the next token does. Expects `P`, the prefix of all keys.
 */
export const leasesLua = ({ leases, holders, counter }: LeaseKeys): string => `
local LEASES, HOLDERS = P .. '${leases}', P .. '${holders}'
local function nowMs()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function holderOf(key) return redis.call('HGET', HOLDERS, key) or '' end
local function holds(key, token) return token ~= '' and holderOf(key) == token end
local function extend(key, leaseMs) redis.call('ZADD', LEASES, nowMs() + leaseMs, key) end
local function take(key, instance, leaseMs)
  local token = instance .. ':' .. redis.call('INCR', P .. '${counter}')
  redis.call('HSET', HOLDERS, key, token)
  extend(key, leaseMs)
  return token
end
-- May run twice: the second time it returns the token of the first.
local function takeIfFree(key, instance, leaseMs)
  local untilMs = redis.call('ZSCORE', LEASES, key)
  if not untilMs or tonumber(untilMs) <= nowMs() then return take(key, instance, leaseMs) end
  local token = holderOf(key)
  return string.sub(token, 1, #instance) == instance and token
end
local function release(key)
  redis.call('HDEL', HOLDERS, key)
  redis.call('ZREM', LEASES, key)
end
`;

/**
 * A Lua function: false for the write of a process that does not lead the prompt. A write without a token is allowed
 * when the prompt has no leader. Expects `P`, the prefix of all keys.
 */
export const MAY_WRITE_LUA = `
local function mayWrite(key, token)
  return (redis.call('HGET', P .. '${PROMPT_LEASES.holders}', key) or '') == token
end
`;

const PROCESS_LEASES: LeaseKeys = {
  leases: 'process-leases',
  holders: 'process-holders',
  counter: 'process-fence',
};

const SCRIPTS = {
  take: 'return takeIfFree(ARGV[1], ARGV[2], ARGV[3])',
  drop: 'if holds(ARGV[1], ARGV[2]) then release(ARGV[1]) end',
};

const POLL_MS = 100;

/** Work that one process at a time may do. The lease of a process that crashed ends after `leaseMs`. */
export type ProcessLease = { readonly name: string; readonly leaseMs: number };

/** Leases on work that one process does for all. */
export class ProcessLeases {
  readonly #scripts: Scripts<keyof typeof SCRIPTS>;
  readonly #instance = randomUUID();

  /** `prefix`: the prefix of all keys. */
  constructor(redis: Redis, prefix: string) {
    const prelude = `local P = KEYS[1]${leasesLua(PROCESS_LEASES)}`;
    this.#scripts = defineScripts(redis, SCRIPTS, { namespace: 'process_leases', prefix, prelude });
  }

  /** Runs the work and returns its result; returns `undefined` when another process holds the lease. */
  async tryWith<T>(
    { name, leaseMs }: ProcessLease,
    work: () => Promise<T>,
  ): Promise<{ readonly value: T } | undefined> {
    const token = await this.#scripts.take<string | null>(name, this.#instance, leaseMs);
    if (token === null) return undefined;
    try {
      return { value: await work() };
    } finally {
      await this.#scripts.drop(name, token);
    }
  }

  /** Waits until no other process holds the lease, then runs the work. */
  async with<T>(lease: ProcessLease, work: () => Promise<T>): Promise<T> {
    for (;;) {
      const done = await this.tryWith(lease, work);
      if (done) return done.value;
      await delay(POLL_MS);
    }
  }
}
