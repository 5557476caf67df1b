import type { Redis } from './redis.ts';

/** Texts and numbers alike arrive in Lua as texts. */
export type ScriptArgument = string | number | Uint8Array;

/** `Reply` is not checked: the caller knows its script. */
type Script = <Reply = void>(...args: ScriptArgument[]) => Promise<Reply>;

export type Scripts<Name extends string> = { readonly [name in Name]: Script };

/**
 * Defines Lua scripts on a connection and returns a function for each. Redis runs a script wholly or not at all.
 * ioredis sends the hash of a script, and its text when Redis does not know the hash, for example after a restart.
 */
export function defineScripts<Name extends string>(
  redis: Redis,
  scripts: { readonly [name in Name]: string },
  options: {
    /** Distinguishes scripts that have the same name on one connection. */
    readonly namespace: string;
    /** Lua that precedes every script: its constants and local functions. */
    readonly prelude?: string;
    /** `KEYS[1]` of every call: the prefix of the keys. */
    readonly prefix: string;
    /** `bytes`: texts of the reply are Buffers. */
    readonly reply?: 'text' | 'bytes';
    /** Runs each call, for example to convert its errors. */
    readonly send?: <Reply>(call: () => Promise<Reply>) => Promise<Reply>;
  },
): Scripts<Name> {
  const { namespace, prelude = '', prefix, reply = 'text', send = (call) => call() } = options;
  const defined = Object.entries<string>(scripts).map(([name, lua]) => {
    const command = `holdover_${namespace}_${name}`;
    redis.defineCommand(command, { numberOfKeys: 1, lua: prelude + lua });
    const method = reply === 'bytes' ? `${command}Buffer` : command;
    const run = Reflect.get(redis, method) as Script;
    return [name, (...args: ScriptArgument[]) => send(() => run.apply(redis, [prefix, ...args]))];
  });
  return Object.fromEntries(defined) as Scripts<Name>;
}
