import type { RedisConnections } from '../redis/redis.ts';

const FORMER_SERVERS =
  'a server of an earlier version still runs on this Redis: stop all of them before the first one of this version';

/**
 * Throws when a server of an earlier version runs on this Redis. Those servers publish entries on one channel of all
 * users, which this version does not read.
 */
export async function refuseFormerServers(links: RedisConnections): Promise<void> {
  const { commands, channels, cluster } = links;
  // Earlier versions do not work on a cluster.
  if (cluster) return;
  const [, count] = (await commands.pubsub('NUMSUB', `${channels}events`)) as unknown[];
  if (Number(count) > 0) throw new Error(FORMER_SERVERS);
}
