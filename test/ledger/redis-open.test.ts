import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { pino } from 'pino';
import { openSharedRedis } from '../../src/ledger/redis/open-shared.ts';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { prompt } from './ledger.suite.ts';
import { freePort } from '../support/processes/free-port.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

const missing = redisMissing();

describe.skipIf(missing !== '')(`a Redis that is opened as ledger${missing}`, () => {
  let server: RedisServer;
  let admin: RedisConnections;
  let lines: string[];
  beforeEach(async () => {
    lines = [];
    server = await startRedis();
    admin = openRedis(server.url, { log: silentLogger() });
    return async () => {
      await admin.close();
      await server.dispose();
    };
  });

  /** Opens it with a log that is kept, and closes it again. */
  async function opened(login = '', database = '') {
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    const url = server.url.replace('//', `//${login}`) + database;
    const redis = await openSharedRedis({ url, log, reachWithinMs: 1000 });
    const secret = await redis.identity.secret?.(Buffer.from([0, 255, lines.length]));
    await redis.ledger.prompts.insert(prompt(`k${Math.random()}`));
    await redis.close();
    return { id: redis.identity.id, secret };
  }

  test('that is durable is opened without a warning', async () => {
    await opened();
    expect(lines).toEqual([]);
  });

  test.each([
    ['appendonly', 'no'],
    ['appendfsync', 'everysec'],
  ])('and has %s %s is opened with a warning that names it', async (setting, value) => {
    await admin.commands.config('SET', setting, value);
    await opened();
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        level: 40,
        setting,
        is: value,
        msg: 'Redis may lose data that was acknowledged to clients',
      },
    ]);
  });

  test('and does not report its settings is opened with a log line', async () => {
    await guestWho('-config');
    await opened('guest:pw-canary@');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: 30, msg: 'Redis does not report its durability settings' },
    ]);
    expect(lines.join()).not.toContain('canary');
  });

  test('gives all processes the same id and the same secret', async () => {
    const [first, ...more] = await Promise.all([opened(), opened(), opened()]);
    expect(first?.secret).toHaveLength(3);
    expect(more).toEqual([first, first]);
    await admin.commands.flushall();
    expect((await opened()).id).not.toBe(first?.id);
  });

  test('and is a node of a Redis Cluster is refused', async () => {
    // By default it listens 10,000 ports higher, too, where another program may have been given that port.
    const busPort = String(await freePort());
    const node = await startRedis({ 'cluster-enabled': 'yes', 'cluster-port': busPort });
    onTestFinished(() => node.dispose());
    await expect(openSharedRedis({ url: node.url, log: silentLogger() })).rejects.toThrow(
      `the ledger ${node.url} is a node of a Redis Cluster: use a Redis that is in none`,
    );
  });

  test.each(['allkeys-lru', 'volatile-ttl'])('and evicts by %s is refused', async (policy) => {
    await admin.commands.config('SET', 'maxmemory-policy', policy);
    await expect(opened()).rejects.toThrow(
      `the ledger ${server.url} may evict records (maxmemory-policy ${policy}): set maxmemory-policy noeviction`,
    );
  });

  test('but was written by another version is refused', async () => {
    await admin.commands.set('holdover:schema', '99');
    await expect(opened()).rejects.toThrow(
      `the ledger ${server.url} was written by another version of Holdover (schema 99, this one has 3)`,
    );
  });

  test('and requires another password is refused, without a password in the error', async () => {
    await admin.commands.config('SET', 'requirepass', 'right');
    const error = await opened(':wrong-canary@').catch((cause: unknown) => cause as Error);
    expect(error).toMatchObject({
      message: expect.stringMatching(
        new RegExp(`^the ledger ${server.url} cannot be used: WRONGPASS`),
      ),
    });
    expect(JSON.stringify([lines, error])).not.toContain('canary');
  });

  async function guestWho(...rules: string[]): Promise<void> {
    await admin.commands.acl('SETUSER', 'guest', 'on', '>pw-canary', '~*', '&*', '+@all', ...rules);
  }

  async function isEmpty(): Promise<boolean> {
    return (await admin.commands.dbsize()) === 0;
  }

  test('and lacks the database is refused, and nothing is written to another one', async () => {
    await expect(opened('', '/16')).rejects.toThrow(
      `the ledger ${server.url}/16 cannot be used: ERR DB index is out of range`,
    );
    expect(await isEmpty()).toBe(true);
  });

  test('and does not let this user choose a database is refused', async () => {
    await guestWho('-select');
    const error = await opened('guest:pw-canary@', '/1').catch((cause: unknown) => cause as Error);
    expect(error).toMatchObject({
      message: expect.stringMatching(/^the ledger \S+\/1 cannot be used: NOPERM .*'select'/),
    });
    expect(JSON.stringify([lines, error])).not.toContain('canary');
    expect(await isEmpty()).toBe(true);
  });

  test('and refuses the database to a connection that was lost gets no commands from it', async () => {
    await guestWho();
    const links = openRedis(`${server.url.replace('//', '//guest:pw-canary@')}/1`, {
      log: silentLogger(),
    });
    const duplicate = links.commands.duplicate();
    duplicate.on('error', () => {});
    onTestFinished(async () => {
      duplicate.disconnect();
      await links.close();
    });
    await Promise.all([links.commands.ping(), duplicate.ping()]);
    await guestWho('-select');
    await admin.commands.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const late = [links.commands.set('one', '1'), duplicate.set('two', '2')];
    await delay(300);
    expect(await isEmpty()).toBe(true);
    await guestWho('+select');
    await Promise.all(late);
    expect(await isEmpty()).toBe(true);
  });

  test('and whose login cannot be decoded is refused with a sentence', async () => {
    const sentence = `the ledger ${server.url} URI malformed`;
    await expect(opened('user:%zz@')).rejects.toThrow(sentence);
  });

  test('but does not answer is reported after a moment', async () => {
    server.pause();
    await expect(opened()).rejects.toThrow(
      `the ledger ${server.url} cannot be used: it does not answer`,
    );
    server.resume();
  });
});
