import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisServer } from './redis.ts';

/** Between some keys and the next ones. */
const KEYS_PAUSE_MS = 20;

/** Moves a slot with its keys, slowly, while both nodes are in use, as `redis-cli --cluster reshard` does. Resolves with the number of keys. */
export async function moveSlot(
  nodes: readonly RedisServer[],
  slot: number,
  [from, to]: readonly [RedisServer, RedisServer],
): Promise<number> {
  const connections = nodes.map((node) => ({ node, redis: new Redis(node.url) }));
  const redisOf = (node: RedisServer): Redis => {
    const found = connections.find((one) => one.node === node);
    if (!found) throw new Error('a slot is moved between nodes of two clusters');
    return found.redis;
  };
  const [source, target] = [redisOf(from), redisOf(to)];
  const setSlot = (redis: Redis, ...words: string[]) =>
    redis.call('CLUSTER', 'SETSLOT', String(slot), ...words);
  const idOf = async (redis: Redis) => String(await redis.call('CLUSTER', 'MYID'));
  let moved = 0;
  try {
    await setSlot(target, 'IMPORTING', await idOf(source));
    await setSlot(source, 'MIGRATING', await idOf(target));
    for (;;) {
      const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '16')) as string[];
      if (keys.length === 0) break;
      await delay(KEYS_PAUSE_MS);
      const { password } = new URL(to.url);
      const access = password === '' ? [] : ['AUTH', password];
      const address = ['127.0.0.1', String(to.port), '', '0', '5000'];
      await source.call('MIGRATE', ...address, ...access, 'KEYS', ...keys);
      moved += keys.length;
    }
    const owner = await idOf(target);
    await setSlot(target, 'NODE', owner);
    for (const { redis } of connections)
      if (redis !== target) await setSlot(redis, 'NODE', owner).catch(() => {});
    return moved;
  } finally {
    for (const { redis } of connections) redis.disconnect();
  }
}
