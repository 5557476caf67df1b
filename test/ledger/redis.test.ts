import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { FileRow, Ledger } from '../../src/ledger/ledger.ts';
import { openRedisLedger } from '../../src/ledger/redis/redis-ledger.ts';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { asset, file, finished, job, ledgerSuite, prompt } from './ledger.suite.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { type Lossy, startLossy } from '../support/processes/lossy-tcp.ts';

const missing = redisMissing();

describe.skipIf(missing !== '')(`over a real Redis${missing}`, () => {
  let server: RedisServer;
  let links: RedisConnections;
  beforeAll(async () => {
    server = await startRedis();
    links = openRedis(server.url, { log: silentLogger() });
  });
  afterAll(async () => {
    await links?.close();
    await server?.dispose();
  });
  beforeEach(() => links.commands.flushall());

  ledgerSuite('redis', () => openRedisLedger({ links }));

  /** Opens, works and closes again. */
  async function using<T>(work: (ledger: Ledger) => Promise<T>): Promise<T> {
    const ledger = openRedisLedger({ links });
    try {
      return await work(ledger);
    } finally {
      await ledger.close();
    }
  }

  test('an output that is named after its removal gets no name', async () => {
    await using(async (ledger) => {
      await ledger.assets.insert(asset('gone', { jobId: 'j1' }));
      await ledger.assets.remove('gone');
      const name = file('o.png', { assetId: 'gone', type: 'output' });
      expect(await ledger.files.claim(name)).toBe(true);
      expect(await ledger.files.list('ann', 'output')).toEqual([]);
      expect(await ledger.files.claim({ ...name, assetId: 'made again' })).toBe(true);
    });
  });

  const keysOf = (rows: readonly { readonly key: string }[]) => rows.map(({ key }) => key);
  const numbered = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`);

  const NAME: FileRow = {
    user: 'ann',
    type: 'input',
    subfolder: '',
    filename: 'x.png',
    assetId: 'a1',
    hash: null,
    sizeBytes: 3,
    contentType: 'image/png',
    modifiedAtMs: 1000,
  };

  describe('processes that share it', () => {
    test('see the writes of the others, in one order', async () => {
      await using(async (one) => {
        await using(async (other) => {
          await one.prompts.insert(prompt('a'));
          await other.prompts.insert(prompt('b'));
          await one.prompts.finish('b', OUTCOME);
          await other.prompts.finish('a', OUTCOME);
          expect(keysOf(await one.prompts.outlines('ann'))).toEqual(['b', 'a']);
        });
      });
    });

    test('only one of them gets a name, a key or a replay that all claim at once', async () => {
      const ledgers = ['1', '2', '3'].map(() => openRedisLedger({ links }));
      const replay = { scope: 's', key: 'k', fingerprint: 'f', atMs: 1 };
      const of = <T>(act: (ledger: Ledger, id: string) => Promise<T>) =>
        Promise.all(ledgers.map((ledger, i) => act(ledger, String(i))));
      const names = await of(({ files }, assetId) => files.claim({ ...NAME, assetId }));
      const keys = await of(({ jobs }, id) => jobs.insert(job(id), 'k'));
      const replays = await of((l, requestId) => l.replays.reserve({ ...replay, requestId }, 0));
      expect(names.filter(Boolean)).toHaveLength(1);
      expect(keys.filter(Boolean)).toHaveLength(1);
      expect(replays.filter((held) => held === undefined)).toHaveLength(1);
      await of((ledger) => ledger.close());
    });
  });

  test('cached lists and outlines of one process follow the writes of others', async () => {
    await using(async (ledger) => {
      await using(async (other) => {
        const outlined = async () => (await ledger.prompts.outlines('ann')).map(({ key }) => key);
        const listed = async () =>
          (await ledger.files.list('ann', 'input')).map(({ filename }) => filename);
        await finished(other, ['a', 'b']);
        await Promise.all([outlined(), outlined()]);
        expect(await outlined()).toEqual(['a', 'b']);
        await finished(other, ['c']);
        expect(await Promise.all([outlined(), outlined()])).toEqual([
          ['a', 'b', 'c'],
          ['a', 'b', 'c'],
        ]);
        await other.prompts.deleteHistory('ann', ['p-a']);
        await finished(other, ['d']);
        expect(await outlined()).toEqual(['b', 'c', 'd']);
        expect(await listed()).toEqual([]);
        await other.files.put(file('x.png'));
        expect(await listed()).toEqual(['x.png']);
        await other.files.remove('ann', file('x.png'));
        expect(await listed()).toEqual([]);
      });
    });
  });

  test('a long history is read completely and in order', async () => {
    await using(async (ledger) => {
      const keys = numbered(345);
      await finished(ledger, keys);
      expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(keys);
    });
  });

  test('a prompt that is removed leaves no key behind', async () => {
    await using(async (ledger) => {
      await finished(ledger, ['a', 'b']);
      await ledger.prompts.insert(prompt('c', { jobId: 'j' }));
      await ledger.prompts.clearHistory('ann');
      await ledger.prompts.remove('c');
    });
    // How often something was taken out of a history is counted for good.
    const kept = ['holdover:prompts:removals', 'holdover:seq'];
    expect((await links.commands.keys('*')).toSorted()).toEqual(kept);
  });

  test('names that differ only in where a part ends stay separate', async () => {
    await using(async (ledger) => {
      const rows = [
        { ...NAME, user: 'a', subfolder: 'b:c', assetId: '1' },
        { ...NAME, user: 'a', subfolder: 'b', filename: 'c:x.png', assetId: '2' },
        { ...NAME, user: 'a:b', subfolder: 'c', assetId: '3' },
      ];
      for (const row of rows) expect(await ledger.files.claim(row)).toBe(true);
      for (const row of rows) expect(await ledger.files.get(row.user, row)).toEqual(row);
    });
  });

  test('closing writes what no call waited for', async () => {
    const ledger = openRedisLedger({ links });
    const written = ledger.prompts.insert(prompt('a'));
    await ledger.close();
    await written;
    await using(async (again) => expect(await again.prompts.live()).toHaveLength(1));
  });

  describe('an unavailable Redis', () => {
    test('after kill -9 has all acknowledged writes, and does the pending ones once it is back', async () => {
      await using(async (ledger) => {
        const acknowledged: string[] = [];
        const writes = numbered(400).map(async (key) => {
          await ledger.prompts.insert(prompt(key));
          acknowledged.push(key);
        });
        await Promise.race(writes);
        await server.kill9();
        const before = [...acknowledged];
        const last = ledger.prompts.finish('k7', OUTCOME);
        await server.restart();
        const live = keysOf(await ledger.prompts.live());
        expect(before.filter((key) => key !== 'k7' && !live.includes(key))).toEqual([]);
        await Promise.all([...writes, last]);
        expect(live).toEqual(numbered(400).filter((key) => key !== 'k7'));
      });
    });

    test.each(['is gone', 'does not answer'])(
      'that %s fails a write after the time limit, and the write is not done later',
      async (how) => {
        const ledger = openRedisLedger({ links, timeoutMs: 300 });
        await ledger.prompts.insert(prompt('before'));
        if (how === 'is gone') await server.kill9();
        else server.pause();
        await delay(20);
        const refusal = ledger.prompts.insert(prompt('refused'));
        await expect(refusal).rejects.toThrow('the ledger could not be written: Command timed out');
        await expect(ledger.prompts.live()).rejects.toThrow('the ledger could not be read');
        if (how === 'is gone') await server.restart();
        else server.resume();
        await expect
          .poll(() => ledger.prompts.live().then(keysOf, () => 'away'))
          .toEqual(['before']);
        await ledger.close();
      },
    );
  });

  describe('a command that is sent again because its answer was lost', () => {
    let lossy: Lossy;
    let ledger: Ledger;
    let lossyLinks: RedisConnections;
    beforeEach(async () => {
      lossy = await startLossy(server.port);
      lossyLinks = openRedis(`redis://127.0.0.1:${lossy.port}`, { log: silentLogger() });
      ledger = openRedisLedger({ links: lossyLinks });
      await ledger.settings.all('unknown');
      return async () => {
        await ledger.close();
        await lossyLinks.close();
        await lossy.close();
      };
    });

    const replay = { scope: 's', key: 'k', fingerprint: 'f', requestId: 'r', atMs: 1 };
    const asset = {
      id: 'a1',
      user: 'ann',
      hash: 'h',
      sizeBytes: 10,
      contentType: 'image/png',
      filePath: 'x.png',
      tagsJson: null,
      createdAtMs: 1,
      expiresAtMs: null,
      jobId: null,
    };
    const acts: [string, unknown, (stores: Ledger) => Promise<unknown>][] = [
      ['a claim of a name', true, ({ files }) => files.claim(NAME)],
      ['a job and the claim of its key', true, ({ jobs }) => jobs.insert(job('j1'), 'k')],
      ['a reservation', undefined, ({ replays }) => replays.reserve(replay, 0)],
      ['an acceptance', undefined, ({ prompts }) => prompts.insert(prompt('a'))],
      ['an asset', true, ({ assets }) => assets.insert(asset, 'k')],
    ];
    test.each(acts)('%s is done once, and succeeds', async (_name, expected, act) => {
      lossy.loseNextAnswer();
      expect(await act(ledger)).toBe(expected);
      expect(lossy.lost()).toBe(1);
    });

    test('counts once', async () => {
      lossy.loseNextAnswer();
      await ledger.assets.insert(asset);
      expect(await ledger.assets.totalBytes()).toBe(10);
      lossy.loseNextAnswer();
      await ledger.assets.remove('a1');
      expect(await ledger.assets.totalBytes()).toBe(0);
      expect(lossy.lost()).toBe(2);
    });

    test('keeps its place in history', async () => {
      for (const key of ['a', 'b']) await ledger.prompts.insert(prompt(key));
      lossy.loseNextAnswer(() => using((other) => other.prompts.finish('b', OUTCOME)));
      await ledger.prompts.finish('a', OUTCOME);
      expect(lossy.lost()).toBe(1);
      expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(['a', 'b']);
    });

    test('does not change a prompt that was finished in between', async () => {
      const patch = { promptId: 'p', jobId: 'j', graphJson: '{}', targetsJson: '[]' };
      await ledger.prompts.insert(prompt('a'));
      lossy.loseNextAnswer(() => using((other) => other.prompts.finish('a', OUTCOME)));
      await ledger.prompts.update('a', 'unfinished', { ...patch, state: 'live' });
      expect(await ledger.prompts.live()).toEqual([]);
      expect(await ledger.prompts.get('a')).toMatchObject({ state: 'done', jobId: 'j' });
    });
  });
});

const OUTCOME = {
  entryJson: '{"status":{}}',
  statusWord: 'success',
  startedAtMs: null,
  endedAtMs: 1200,
};
