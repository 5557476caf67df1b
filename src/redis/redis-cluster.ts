import { type Command, Cluster, type Redis, type RedisOptions } from 'ioredis';
import { redisNodes, splitHosts } from '../config/redis-hosts.ts';
import { type ConnectionOptions, reconnectDelayMs } from './reconnecting-redis.ts';
import type { ReplicatedWrites } from './replicated-writes.ts';

/** The wait before a command is sent again while a node is away or another one takes over. */
const RETRY_DELAY_MS = 250;
/** Two nodes may name each other for a moment. */
const MOVED_DELAY_MS = 20;
/** The time in which a node must say which slots there are. */
const SLOTS_TIMEOUT_MS = 4000;
/** Commands are sent again until their time is over. */
const UNLIMITED = 2 ** 31;

/**
 * Replies of a node that has too few replicas, and of one whose slot moves. The first key of a script exists
 * nowhere, so no script is run until the slot has moved: neither node has all of its keys.
 */
const NOT_NOW = /^(NOREPLICAS|ASK)\b/;

/** Commands that are answered when a replica has what they wrote. Scripts that only read are among them. */
const WRITES = new Set(['eval', 'evalsha', 'set', 'hset', 'del', 'incr', 'zadd', 'pexpire']);

/**
 * A connection to a cluster. Commands are those for one Redis: each is sent to the node that has its
 * key. While nodes are away they wait, as those of `ReconnectingRedis` do.
 */
export class ReconnectingCluster extends Cluster {
  readonly #url: string;
  readonly #options: ConnectionOptions;
  readonly #writes: ReplicatedWrites;
  /** The node that each command was sent to last. */
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
    this.#staysEnded();
  }

  override sendCommand(command: Command, ...more: [stream?: never, node?: never]): unknown {
    const { commandTimeout } = this.#options;
    if (commandTimeout !== undefined) command.setTimeout(commandTimeout);
    const reply = super.sendCommand(command, ...more);
    const isAlone = more.length === 0;
    return isAlone && WRITES.has(command.name) ? this.#whenReplicated(command, reply) : reply;
  }

  override handleError(error: Error, ...more: [ttl: object, handlers: unknown]): void {
    const reason = NOT_NOW.test(error.message) ? `TRYAGAIN ${error.message}` : error.message;
    super.handleError(new Error(reason, { cause: error }), ...more);
  }

  /** Without a word of the replica the command is sent again, as without an answer. */
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
   * After the end the library emits "close" again for the nodes that close late. Commands would then wait without an
   * end, as they do for a connection that is opened again.
   */
  #staysEnded(): void {
    let hasEnded = false;
    this.on('connecting', () => (hasEnded = false));
    this.on('end', () => (hasEnded = true));
    this.on('close', () => hasEnded && (this.status = 'end'));
  }

  #watchCommands(node: Redis): void {
    const send = node.sendCommand.bind(node);
    node.sendCommand = (command, ...more) => {
      // The library sends a command that timed out all the same, once the node is back.
      if (command.isSettled) return command.promise;
      this.#sentTo.set(command, node);
      return send(command, ...more);
    };
  }

  /** The queue's library takes connections of its own this way. */
  override duplicate<Given extends DuplicateOptions = undefined>(
    _nodes?: unknown,
    overrides?: Given,
  ): ReturnType<typeof Cluster.prototype.duplicate<Given>> {
    const options = { ...this.#options, ...overrides?.redisOptions };
    const copy = new ReconnectingCluster(this.#url, options, this.#writes);
    return copy as unknown as ReturnType<typeof this.duplicate<Given>>;
  }
}

/** A command that was answered cannot be sent again itself. */
function copyOf(command: Command): Command {
  const replyEncoding = Reflect.get(command, 'replyEncoding') as BufferEncoding | null;
  const args = [command.name, [...command.args], { replyEncoding }];
  // A script has a class of its own.
  return Reflect.construct(command.constructor, args) as Command;
}

type DuplicateOptions = Parameters<typeof Cluster.prototype.duplicate>[1];

/** The login of each node, and how its connections are encrypted. */
export function accessOf(url: string): Pick<RedisOptions, 'username' | 'password' | 'tls'> {
  const { username, password, protocol } = new URL(`${splitHosts(url).login}host`);
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  };
}
