// A client whose socket closes at one server and opens at another gets each frame, and none twice.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDeferred } from '../../src/lib/concurrency.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { openPromptServer } from './prompt-server.ts';

/** The frames of a prompt that is cancelled before it starts. */
const FRAMES = ['execution_interrupted', 'executing:null'];

describe.skipIf(redisMissing() !== '')(`sockets that move${redisMissing()}`, () => {
  let redis: RedisServer;
  beforeAll(async () => void (redis = await startRedis()));
  afterAll(() => redis?.dispose());

  test('a prompt that ends while its user begins to be followed is shown once', async () => {
    const [isRead, goesOn] = [createDeferred(), createDeferred()];
    const leader = await openPromptServer(redis.url);
    const follower = await openPromptServer(redis.url, (prompts) => ({
      /** The prompt is live when it is read, and has ended when the reader has it. */
      async live(user) {
        const rows = await prompts.live(user);
        if (user === undefined) return rows;
        isRead.resolve();
        await goesOn.promise;
        return rows;
      },
    }));
    const prompt = await leader.accept('read-before-its-end');
    const followed = follower.follow();
    await isRead.promise;
    await leader.end(prompt);
    await expect.poll(() => follower.promptEventLog.hasAppliedEnd(prompt.key)).toBe(true);
    goesOn.resolve();
    await followed;
    const socket = await follower.connect();
    expect(socket.heard()).toEqual(FRAMES);
  });
});
