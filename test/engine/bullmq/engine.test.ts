import { describe } from 'vitest';
import { jobsSuite } from '../jobs.suite.ts';
import { TINY_WORKFLOWS } from '../memory/open.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { openQueueSetup, startQueued, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`over Redis${redisMissing()}`, () => {
  const redis = useRedis();

  jobsSuite('the queued engine in one process', async () => {
    const setup = await openQueueSetup(redis());
    return { api: await startQueued(setup), workflows: TINY_WORKFLOWS };
  });

  jobsSuite('a front with its workers elsewhere', async () => {
    const setup = await openQueueSetup(redis());
    const api = await startQueued(setup, { limits: { concurrency: 0 } });
    await startQueued(setup);
    return { api, workflows: TINY_WORKFLOWS };
  });
});
