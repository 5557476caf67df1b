import { afterAll, beforeAll, describe } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis.ts';
import { type RedisLinks, openRedis } from '../../src/redis.ts';
import { createLogger } from '../../src/telemetry.ts';
import { ledgerSuite } from '../ledger.suite.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/redis.ts';

const missing = redisMissing();

describe.skipIf(missing !== '')(`over a real Redis${missing}`, () => {
  let server: RedisServer;
  let links: RedisLinks;
  beforeAll(async () => {
    server = await startRedis();
    links = openRedis(server.url, { log: createLogger({ level: 'silent' }) });
  });
  afterAll(async () => {
    await links?.close();
    await server?.dispose();
  });

  ledgerSuite('redis', async () => {
    await links.commands.flushall();
    return openRedisLedger({ links });
  });
});
