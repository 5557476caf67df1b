import { describe } from 'vitest';
import { jobsSuite } from '../jobs.suite.ts';
import { TINY_WORKFLOWS } from '../engine/open.ts';
import { redisMissing } from '../support/redis.ts';
import { openWorld, startQueued, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`over Redis${redisMissing()}`, () => {
  const redis = useRedis();

  jobsSuite('the queued engine in one process', async () => {
    const world = await openWorld(redis());
    return { api: await startQueued(world), workflows: TINY_WORKFLOWS };
  });

  jobsSuite('a front with its workers elsewhere', async () => {
    const world = await openWorld(redis());
    const api = await startQueued(world, { limits: { concurrency: 0 } });
    await startQueued(world);
    return { api, workflows: TINY_WORKFLOWS };
  });
});
