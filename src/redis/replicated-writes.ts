import type { Redis } from 'ioredis';
import { coalesce } from '../lib/concurrency.ts';
import type { Logger } from '../observability/log.ts';

/** The time limit of one `WAIT`. Other commands of the connection wait meanwhile. */
const WAIT_MS = 500;
/** How long the number of replicas that a node has reported is used. */
const KNOWN_FOR_MS = 1000;
/** A replica that is further behind is not counted, as with `min-replicas-to-write`. */
const MAX_LAG_S = 10;

/**
 * Waits until replicas have the writes of a node, so that no acknowledged write is lost when a replica takes over.
 * All connections of a process share one object.
 */
export class ReplicatedWrites {
  readonly #log: Logger;
  readonly #replicas = new Map<string, { readonly count: number; readonly askedAtMs: number }>();
  readonly #waits = new WeakMap<Redis, () => Promise<void>>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * Resolves when one replica has every write that Redis has answered on this connection, or when the node has no
   * replica. Rejects when the node does not answer or has become a replica: then the writes may be lost.
   */
  async whenReplicated(node: Redis): Promise<void> {
    // `coalesce` starts another wait after a running one, which may have begun before the write.
    const wait = this.#waits.get(node) ?? coalesce(() => this.#wait(node));
    this.#waits.set(node, wait);
    await wait();
  }

  async #wait(node: Redis): Promise<void> {
    for (let maxAgeMs = KNOWN_FOR_MS; ; maxAgeMs = 0) {
      if ((await this.#replicasOf(node, maxAgeMs)) === 0) return;
      if ((await node.wait(1, WAIT_MS)) > 0) return;
    }
  }

  async #replicasOf(node: Redis, maxAgeMs: number): Promise<number> {
    const address = `${node.options.host}:${node.options.port}`;
    const known = this.#replicas.get(address);
    if (known && performance.now() - known.askedAtMs < maxAgeMs) return known.count;
    const count = countReplicas(await node.info('replication'));
    if (count === 0 && known && known.count > 0) {
      const event = 'redis.no_replica';
      this.#log.warn(
        { event, node: address },
        'a node of the Redis Cluster has no replica now: its writes are acknowledged without one',
      );
    }
    this.#replicas.set(address, { count, askedAtMs: performance.now() });
    return count;
  }
}

/** Counts the replicas that are at most `MAX_LAG_S` behind, from the section `replication` of INFO. */
function countReplicas(info: string): number {
  if (!info.includes('role:master')) throw new Error('the node has become a replica');
  const lines = info.split('\n').filter((line) => /^slave\d+:/.test(line));
  const online = lines.filter((line) => line.includes('state=online'));
  return online.filter((line) => Number(/lag=(\d+)/.exec(line)?.[1]) <= MAX_LAG_S).length;
}
