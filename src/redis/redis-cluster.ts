import { type Command, Cluster, type Redis, type RedisOptions } from 'ioredis';
import { redisNodes, splitHosts } from '../config/redis-hosts.ts';
import { type ConnectionOptions, reconnectDelayMs } from './reconnecting-redis.ts';
import type { ReplicatedWrites } from './replicated-writes.ts';

/** The delay before a command is sent again while a node is unreachable or its replica takes over. */
const RETRY_DELAY_MS = 250;
/** While a slot moves, two nodes may redirect to each other for a moment. */
const MOVED_DELAY_MS = 20;
/** A node must answer `CLUSTER SLOTS` within this time. */
const SLOTS_TIMEOUT_MS = 4000;
/** Commands are sent again until they time out. */
const UNLIMITED = 2 ** 31;

/**
 * Replies of a node that has too few replicas, and of a node while it moves the slot away. Each is handled as
 * `TRYAGAIN`. A script waits until its slot has moved, because until then neither node has all of its keys: its
 * first key exists at neither node, so the node always replies `ASK`.
 */
const RETRYABLE = /^(NOREPLICAS|ASK)\b/;

/** Commands whose caller gets the reply after a replica has the write. Scripts that only read are included. */
const WRITES = new Set(['eval', 'evalsha', 'set', 'hset', 'del', 'incr', 'zadd', 'pexpire']);

/**
 * A connection to a cluster, with the commands of a connection to one Redis. Each command is sent to the node
 * that has its key. While that node is unreachable the command waits, as in `ReconnectingRedis`.
 */
export class ReconnectingCluster extends Cluster {
  readonly #url: string;
  readonly #options: ConnectionOptions;
  readonly #writes: ReplicatedWrites;
  /** The node to which each command was last sent. */
  readonly #sentTo = new WeakMap<Command, Redis>();

  constructor(url: string, options: ConnectionOptions, writes: ReplicatedWrites) {
    super(redisNodes(url), {
      clusterRetryStrategy: reconnectDelayMs,
      retryDelayOnFailover: RETRY_DELAY_MS,
      retryDelayOnClusterDown: RETRY_DELAY_MS,
      retryDelayOnTryAgain: RETRY_DELAY_MS,
      retryDelayOnMoved: MOVED_DELAY_MS,
      slotsRefreshTimeout: SLOTS_TIMEOUT_MS,
      maxRedirections: UNLIMITED,
      redisOptions: { ...accessOf(url), maxRetriesPerRequest: null, ...options },
    });
    this.#url = url;
    this.#options = options;
    this.#writes = writes;
    this.on('+node', (node: Redis) => this.#watchCommands(node));
    this.#keepEnded();
  }

  override sendCommand(command: Command, ...more: [stream?: never, node?: never]): unknown {
    const { commandTimeout } = this.#options;
    if (commandTimeout !== undefined) command.setTimeout(commandTimeout);
    const reply = super.sendCommand(command, ...more);
    const isAlone = more.length === 0;
    return isAlone && WRITES.has(command.name) ? this.#whenReplicated(command, reply) : reply;
  }

  override handleError(error: Error, ...more: [ttl: object, handlers: unknown]): void {
    const reason = RETRYABLE.test(error.message) ? `TRYAGAIN ${error.message}` : error.message;
    super.handleError(new Error(reason, { cause: error }), ...more);
  }

  /** Resolves when a replica has the write. If that remains unknown, the command is sent again. */
  async #whenReplicated(command: Command, reply: unknown): Promise<unknown> {
    const answer = await reply;
    const node = this.#sentTo.get(command);
    try {
      if (node) await this.#writes.whenReplicated(node);
      return answer;
    } catch {
      return await this.sendCommand(copyOf(command));
    }
  }

  /**
   * After "end" ioredis emits "close" for each node that closes later, and sets the status to "close". In that status
   * commands wait for a new connection, which never comes. So the status is set back to "end".
   */
  #keepEnded(): void {
    let hasEnded = false;
    this.on('connecting', () => (hasEnded = false));
    this.on('end', () => (hasEnded = true));
    this.on('close', () => hasEnded && (this.status = 'end'));
  }

  #watchCommands(node: Redis): void {
    const send = node.sendCommand.bind(node);
    node.sendCommand = (command, ...more) => {
      // ioredis sends READONLY to replicas, which then run scripts instead of naming their node: a script that reads
      // would get old data, and one that writes would be refused.
      if (command.name === 'readonly') command.resolve('OK');
      // ioredis would send a command that has timed out when the node is reachable again.
      if (command.isSettled) return command.promise;
      this.#sentTo.set(command, node);
      return send(command, ...more);
    };
  }

  /** BullMQ calls this to open connections of its own. */
  override duplicate<Given extends DuplicateOptions = undefined>(
    _nodes?: unknown,
    overrides?: Given,
  ): ReturnType<typeof Cluster.prototype.duplicate<Given>> {
    const options = { ...this.#options, ...overrides?.redisOptions };
    const copy = new ReconnectingCluster(this.#url, options, this.#writes);
    return copy as unknown as ReturnType<typeof this.duplicate<Given>>;
  }
}

/** A copy of a command that was answered: ioredis does not send the same object again. */
function copyOf(command: Command): Command {
  const replyEncoding = Reflect.get(command, 'replyEncoding') as BufferEncoding | null;
  const args = [command.name, [...command.args], { replyEncoding }];
  // The command of a script is of a subclass.
  return Reflect.construct(command.constructor, args) as Command;
}

type DuplicateOptions = Parameters<typeof Cluster.prototype.duplicate>[1];

/** The user name, password and TLS setting of a Redis address; they are the same for all nodes of a cluster. */
export function accessOf(url: string): Pick<RedisOptions, 'username' | 'password' | 'tls'> {
  const { username, password, protocol } = new URL(`${splitHosts(url).login}host`);
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  };
}
