import { type Command, Cluster, type Redis, type RedisOptions } from 'ioredis';
import { redisNodes, splitHosts } from '../config/redis-hosts.ts';
import { type ConnectionOptions, reconnectDelayMs } from './reconnecting-redis.ts';

/** The wait before a command is sent again while a node is away or another one takes over. */
const RETRY_DELAY_MS = 250;
/** Two nodes may name each other for a moment. */
const MOVED_DELAY_MS = 20;
/** The time in which a node must say which slots there are. */
const SLOTS_TIMEOUT_MS = 4000;
/** Commands are sent again until their time is over. */
const UNLIMITED = 2 ** 31;

/**
 * A connection to a cluster. Commands are those for one Redis: each is sent to the node that has its
 * key. While nodes are away they wait, as those of `ReconnectingRedis` do.
 */
export class ReconnectingCluster extends Cluster {
  readonly #url: string;
  readonly #options: ConnectionOptions;

  constructor(url: string, options: ConnectionOptions) {
    super(redisNodes(url), {
      clusterRetryStrategy: reconnectDelayMs,
      retryDelayOnFailover: RETRY_DELAY_MS,
      retryDelayOnClusterDown: RETRY_DELAY_MS,
      retryDelayOnMoved: MOVED_DELAY_MS,
      slotsRefreshTimeout: SLOTS_TIMEOUT_MS,
      maxRedirections: UNLIMITED,
      redisOptions: { ...accessOf(url), maxRetriesPerRequest: null, ...options },
    });
    this.#url = url;
    this.#options = options;
    this.on('+node', sendNothingLate);
  }

  override sendCommand(command: Command, ...more: [stream?: never, node?: never]): unknown {
    const { commandTimeout } = this.#options;
    if (commandTimeout !== undefined) command.setTimeout(commandTimeout);
    return super.sendCommand(command, ...more);
  }

  /** The queue's library takes connections of its own this way. */
  override duplicate<Given extends DuplicateOptions = undefined>(
    _nodes?: unknown,
    overrides?: Given,
  ): ReturnType<typeof Cluster.prototype.duplicate<Given>> {
    const options = { ...this.#options, ...overrides?.redisOptions };
    const copy = new ReconnectingCluster(this.#url, options);
    return copy as unknown as ReturnType<typeof this.duplicate<Given>>;
  }
}

/** The library sends a command that timed out all the same, once the node is back. */
function sendNothingLate(node: Redis): void {
  const send = node.sendCommand.bind(node);
  node.sendCommand = (command, ...more) =>
    command.isSettled ? command.promise : send(command, ...more);
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
