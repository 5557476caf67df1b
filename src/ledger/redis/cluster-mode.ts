import { Redis } from 'ioredis';
import { type RedisNode, redisNodes } from '../../config/redis-hosts.ts';
import { accessOf } from '../../redis/redis-cluster.ts';
import { type RedisConnections, askNodes } from '../../redis/redis.ts';
import type { Logger } from '../../observability/log.ts';

const SLOTS = 16_384;
const ONE_NODE = 'is a node of a cluster: name several of its nodes, redis://HOST:PORT,HOST:PORT…';
const INCOMPLETE = 'cannot be used: no node has some of the slots of the cluster';
const DOWN = 'cannot be used: the cluster reports that it is down (cluster_state:fail)';
const MOVING = 'cannot be used while slots of the cluster are moved: start again when that is done';

/** True for the line of CLUSTER NODES about the node itself when it is moving a slot to or from another node. */
function movesSlot(line: string): boolean {
  return /\bmyself\b/.test(line) && /\[\d+-[<>]-/.test(line);
}

/**
 * Throws when no named node answers, or when one that answers is in no cluster, or in another cluster than the
 * others. Logs the nodes that do not answer.
 */
export async function checkNamedNodes(
  url: string,
  { log, withinMs }: { readonly log: Logger; readonly withinMs: number },
): Promise<void> {
  const named = redisNodes(url);
  const asked = await Promise.all(named.map((node) => askNode(node, url, withinMs)));
  const answers = asked.flatMap((answer) => ('id' in answer ? [answer] : []));
  for (const answer of asked) {
    if ('id' in answer) continue;
    if (answers.length === 0) throw new Error(`cannot be used: ${answer.reason}`);
    const event = 'redis.node_unreachable';
    log.warn({ event, ...answer }, 'a node of the Redis Cluster cannot be reached');
  }
  const [first] = answers;
  const foreign = answers.find(({ id }) => !first?.nodes.includes(id));
  if (first && foreign) {
    throw new Error(
      `cannot be used: ${foreign.node} is not a node of the cluster of ${first.node}`,
    );
  }
}

type NodeAnswer =
  | { readonly node: string; readonly id: string; readonly nodes: string }
  | { readonly node: string; readonly reason: string };

/** Asks one node for its id and the nodes it knows. Throws when the node answers with an error. */
async function askNode(
  { host, port }: RedisNode,
  url: string,
  withinMs: number,
): Promise<NodeAnswer> {
  const node = `${host}:${port}`;
  const times = { connectTimeout: withinMs, commandTimeout: withinMs, enableReadyCheck: false };
  const once = { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 };
  const redis = new Redis({ ...accessOf(url), host, port, ...times, ...once });
  let reason = 'it does not answer';
  redis.on('error', (error: NodeJS.ErrnoException) => {
    reason = error.message || (error.code ?? reason);
  });
  try {
    await redis.connect();
    const [id, nodes] = [await redis.cluster('MYID'), await redis.cluster('NODES')];
    return { node, id: String(id), nodes: String(nodes) };
  } catch (error) {
    const { name, message } = error as Error;
    if (name !== 'ReplyError') return { node, reason };
    throw new Error(`cannot be used: ${node}: ${message}`, { cause: error });
  } finally {
    redis.disconnect();
  }
}

/**
 * Throws when the single named Redis is a node of a cluster, or when the cluster cannot serve all slots now.
 */
export async function checkClusterMode(links: RedisConnections): Promise<void> {
  const { cluster, commands } = links;
  if (!cluster) {
    const info = await commands.info('cluster').catch(() => '');
    if (info.includes('cluster_enabled:1')) throw new Error(ONE_NODE);
    return;
  }
  const info = String(await cluster.cluster('INFO'));
  if (!info.includes(`cluster_slots_assigned:${SLOTS}`)) throw new Error(INCOMPLETE);
  if (info.includes('cluster_state:fail')) throw new Error(DOWN);
  // While a slot moves, a script would find some of its keys at one node and some at another.
  const nodes = await askNodes(links, (node) => node.cluster('NODES').then(String, () => ''));
  if (nodes.some((lines) => lines.split('\n').some(movesSlot))) throw new Error(MOVING);
}
