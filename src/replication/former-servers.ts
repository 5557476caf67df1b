import type { RedisConnections } from '../redis/redis.ts';

const FORMER_SERVERS =
  'a server of an earlier version still runs on this Redis: stop all of them before the first one of this version';

/** They publish what happens to prompts on a channel of all users, which is not read any more. */
export async function refuseFormerServers(links: RedisConnections): Promise<void> {
  const { commands, channels, cluster } = links;
  // Earlier versions do not work on a cluster.
  if (cluster) return;
  const [, count] = (await commands.pubsub('NUMSUB', `${channels}events`)) as unknown[];
  if (Number(count) > 0) throw new Error(FORMER_SERVERS);
}
