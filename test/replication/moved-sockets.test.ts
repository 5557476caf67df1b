// A client whose socket closes at one server and opens at another gets each frame, and none twice.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDeferred } from '../../src/lib/concurrency.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { openPromptServer } from './prompt-server.ts';

/** The frames of a prompt that is cancelled before it starts. */
const FRAMES = ['execution_interrupted', 'executing:null'];
const ENDED = 'holdover:ended:ann';

describe.skipIf(redisMissing() !== '')(`sockets that move${redisMissing()}`, () => {
  let redis: RedisServer;
  beforeAll(async () => void (redis = await startRedis()));
  afterAll(() => redis?.dispose());

  test('a prompt that ends while its user begins to be followed is shown once', async () => {
    const leader = await openPromptServer(redis.url);
    const { server, reading } = await openSlowReader();
    const prompt = await leader.accept('read-before-its-end');
    const followed = server.follow();
    await reading.hasRead;
    await leader.end(prompt);
    await expect.poll(() => server.promptEventLog.hasAppliedEnd(prompt.key)).toBe(true);
    reading.goOn();
    await followed;
    const socket = await server.connect();
    expect(socket.heard()).toEqual(FRAMES);
  });

  test('the server that takes a prompt over sends the last frame that the dead server did not send', async () => {
    const { server: leader, writing } = await openSlowWriter();
    const { server, reading } = await openSlowReader();
    const prompt = await leader.accept('without-last-frame');
    void leader.end(prompt);
    await writing.hasWritten;
    // It is done, and not among those that ended: the reader finds it in neither place.
    const followed = server.follow();
    await reading.hasRead;
    await leader.die();
    await expect.poll(() => server.links.commands.zscore(ENDED, prompt.key)).not.toBeNull();
    reading.goOn();
    await followed;
    const socket = await server.connect();
    expect(socket.heard()).toEqual(FRAMES);
  });

  test('frames received at another server while this one was disconnected are not sent again', async () => {
    const [leader, other] = [await openPromptServer(redis.url), await openPromptServer(redis.url)];
    const socket = await leader.connect();
    const prompt = await leader.accept('received-unheard');
    await other.follow();
    await leader.links.commands.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await leader.end(prompt);
    expect(socket.heard()).toEqual(FRAMES);
    await expect.poll(() => other.promptEventLog.hasAppliedEnd(prompt.key)).toBe(true);
    socket.close();
    const moved = await other.connect();
    expect(moved.heard()).toEqual([]);
  });

  /** The prompts of a user may have changed when it has read them. */
  async function openSlowReader() {
    const [read, goesOn] = [createDeferred(), createDeferred()];
    const server = await openPromptServer(redis.url, (prompts) => ({
      async live(user) {
        const rows = await prompts.live(user);
        if (user === undefined) return rows;
        read.resolve();
        await goesOn.promise;
        return rows;
      },
    }));
    return { server, reading: { hasRead: read.promise, goOn: goesOn.resolve } };
  }

  /** It writes the history of a prompt, and does not go on. */
  async function openSlowWriter() {
    const [written, goesOn] = [createDeferred(), createDeferred()];
    const server = await openPromptServer(redis.url, (prompts) => ({
      async finish(...end) {
        await prompts.finish(...end);
        written.resolve();
        await goesOn.promise;
      },
    }));
    onTestFinished(goesOn.resolve);
    return { server, writing: { hasWritten: written.promise } };
  }
});
