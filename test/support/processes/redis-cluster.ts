import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { type RedisServer, startRedisNode } from './redis.ts';

/** Three nodes that have a third of the slots each. */
export type RedisCluster = {
  /** Names all nodes. */
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** One of each node, in their order; empty unless asked for. */
  readonly replicas: readonly RedisServer[];
  flush(): Promise<void>;
  /** Resolves when all nodes serve their slots. */
  whenReady(): Promise<void>;
  /** All it keeps on disk. */
  everything(): Promise<string>;
  dispose(): Promise<void>;
};

const SLOTS = 16_384;
const NODES = 3;
const READY_WITHIN_MS = 30_000;
/** A node that is started again has the same place in the cluster. */
const SETTINGS = {
  'cluster-enabled': 'yes',
  'cluster-node-timeout': '2000',
  // Calls to the other nodes are answered while one is away.
  'cluster-require-full-coverage': 'no',
  // A replica is filled at once.
  'repl-diskless-sync-delay': '0',
};

export async function startRedisCluster(
  options: { readonly withReplicas?: true; readonly password?: string } = {},
): Promise<RedisCluster> {
  const { withReplicas, password } = options;
  const count = withReplicas ? 2 * NODES : NODES;
  const access = password !== undefined && { requirepass: password, masterauth: password };
  const settings = { ...SETTINGS, ...access };
  const busPorts = await Promise.all(Array.from({ length: count }, () => freePort()));
  const all = await Promise.all(
    busPorts.map((port) => startRedisNode({ ...settings, 'cluster-port': String(port) })),
  );
  const [nodes, replicas] = [all.slice(0, NODES), all.slice(NODES)];
  const first = [nodes[0]?.port, busPorts[0]].map(String);
  await onEach(all, async (redis) => {
    await redis.call('CLUSTER', 'MEET', '127.0.0.1', ...first);
  });
  await onEach(nodes, async (redis, i) => {
    const [from, to] = [i, i + 1].map((n) => Math.floor((n * SLOTS) / NODES));
    await redis.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String((to ?? SLOTS) - 1));
  });
  const whenReady = async () => void (await onEach(all, (redis) => untilReady(redis, count)));
  await whenReady();
  await onEach(replicas, async (redis, i) => replicate(redis, nodes[i]));
  return {
    url: `redis://${password === undefined ? '' : `:${password}@`}${all.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    replicas,
    whenReady,
    flush: async () => void (await onEach(nodes, (redis) => redis.flushall())),
    everything: async () => (await Promise.all(all.map((node) => node.everything()))).join('\n'),
    dispose: async () => void (await Promise.all(all.map((node) => node.dispose()))),
  };
}

/** Resolves when the replica has all that its node has. */
async function replicate(replica: Redis, node: RedisServer | undefined): Promise<void> {
  if (!node) throw new Error('a replica has no node');
  const [id] = await onEach([node], (redis) => redis.call('CLUSTER', 'MYID'));
  await replica.call('CLUSTER', 'REPLICATE', String(id));
  await until(async () => (await replica.info('replication')).includes('master_link_status:up'));
}

/** Watches the keys of all scripts that run from now on. */
export async function watchScripts({ nodes }: RedisCluster): Promise<ScriptWatch> {
  const elsewhere: string[] = [];
  let commands = 0;
  const monitors = await Promise.all(
    nodes.map(({ url }) => new Redis(url, { lazyConnect: true }).monitor()),
  );
  for (const monitor of monitors) {
    // A node may be stopped by the test; it is watched again later.
    monitor.on('error', () => {});
    let tag: string | undefined;
    monitor.on('monitor', (_time: string, args: readonly string[], source: string) => {
      const name = (args[0] ?? '').toLowerCase();
      if (source !== 'lua') {
        tag = /^(evalsha|eval)$/.test(name) ? tagOf(args[3]) : undefined;
        return;
      }
      const key = name === 'pubsub' ? args[2] : args[1];
      if (key === undefined) return;
      commands++;
      if (tagOf(key) !== tag) elsewhere.push(`{${tag}} ${args.slice(0, 2).join(' ')}`);
    });
  }
  return {
    elsewhere: () => elsewhere,
    commands: () => commands,
    close: () => monitors.forEach((monitor) => monitor.disconnect()),
  };
}

/** Commands in scripts, and those with a key that has not the tag of the script's first key. */
export type ScriptWatch = {
  elsewhere(): readonly string[];
  commands(): number;
  close(): void;
};

function tagOf(key = ''): string | undefined {
  return /\{([^}]+)\}/.exec(key)?.[1];
}

async function onEach<T>(
  nodes: readonly RedisServer[],
  act: (redis: Redis, index: number) => Promise<T>,
): Promise<T[]> {
  return Promise.all(
    nodes.map(async ({ url }, i) => {
      const redis = new Redis(url);
      try {
        return await act(redis, i);
      } finally {
        redis.disconnect();
      }
    }),
  );
}

async function untilReady(redis: Redis, nodes: number): Promise<void> {
  await until(async () => {
    const info = String(await redis.call('CLUSTER', 'INFO'));
    const isReady =
      info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${nodes}`);
    return isReady && info.includes(`cluster_slots_ok:${SLOTS}`);
  });
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const deadlineMs = Date.now() + READY_WITHIN_MS; Date.now() < deadlineMs;) {
    if (await isSo()) return;
    await delay(50);
  }
  throw new Error('the Redis Cluster did not become ready');
}
