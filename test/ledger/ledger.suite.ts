import { NEW_PROMPT, type PromptEnd } from '../../src/ledger/columns.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type {
  AssetRow,
  FileRow,
  FileType,
  JobRow,
  Ledger,
  PromptRow,
} from '../../src/ledger/ledger.ts';
import { newestNamed } from '../../src/files/asset-catalog.ts';
import { callStoreSuite } from './ledger-calls.suite.ts';
import { modelStoresSuite } from './ledger-models.suite.ts';

/** A prompt as `POST /prompt` accepts it, before its v2 job exists. */
export function prompt(key: string, more: Partial<PromptRow> = {}): PromptRow {
  return {
    key,
    user: 'ann',
    promptId: `p-${key}`,
    jobId: null,
    number: 0,
    clientId: null,
    createdAtMs: 1000,
    graphJson: '{}',
    extraDataJson: '{}',
    targetsJson: '[]',
    intentJson: '{}',
    ...NEW_PROMPT,
    state: 'submitting',
    ...more,
  };
}

/** Of bytes: no history of these tests has so many. */
const PLENTY = 1e12;

const OUTCOME = {
  entryJson: '{"status":{}}',
  statusWord: 'success',
  startedAtMs: 1100,
  endedAtMs: 1200,
  nodeTimesJson: '{"1":[0,50]}',
} satisfies Required<PromptEnd>;

/** Accepts prompts and finishes them in the order given. */
export async function finished(
  ledger: Ledger,
  keys: readonly string[],
  user = 'ann',
): Promise<void> {
  for (const key of keys) await ledger.prompts.insert(prompt(key, { user }));
  for (const key of keys) await ledger.prompts.finish(key, OUTCOME);
}

export function file(filename: string, more: Partial<FileRow> = {}): FileRow {
  return {
    user: 'ann',
    type: 'input',
    subfolder: '',
    filename,
    assetId: `asset-of-${filename}`,
    hash: null,
    sizeBytes: 3,
    contentType: 'image/png',
    modifiedAtMs: 1000,
    ...more,
  };
}

export function job(id: string, more: Partial<JobRow> = {}): JobRow {
  return {
    id,
    user: 'ann',
    status: 'queued',
    order: 0,
    createdAtMs: 1000,
    startedAtMs: null,
    completedAtMs: null,
    expiresAtMs: 9000,
    workflowJson: '{}',
    provenanceJson: null,
    metadataJson: null,
    outputsJson: '[]',
    errorJson: null,
    extrasJson: null,
    ...more,
  };
}

export function asset(id: string, more: Partial<AssetRow> = {}): AssetRow {
  return {
    id,
    user: 'ann',
    hash: `blake3:${id}`,
    sizeBytes: 10,
    contentType: 'image/png',
    filePath: `${id}.png`,
    tagsJson: null,
    createdAtMs: 1000,
    expiresAtMs: null,
    jobId: null,
    ...more,
  };
}

function linkedTo(jobId: string) {
  return { state: 'live', jobId, targetsJson: '["2"]' } as const;
}

function keysOf(rows: readonly { readonly key: string }[]): string[] {
  return rows.map(({ key }) => key);
}

function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

function namesOf(rows: readonly FileRow[]): string[] {
  return rows.map(({ filename }) => filename);
}

/** The tests that every ledger passes, whatever it is stored in. */
export function ledgerSuite(name: string, open: () => Ledger): void {
  describe(`the ${name} ledger`, () => {
    let ledger: Ledger;
    beforeEach(() => {
      ledger = open();
    });
    afterEach(() => ledger.close());

    describe('prompts', () => {
      test('how a prompt is submitted may change until it has a job', async () => {
        const intent = { intentJson: '{"key":"a.1"}', targetsJson: '["1"]' };
        await ledger.prompts.insert(prompt('a'));
        await ledger.prompts.update('a', 'unlinked', { ...intent, state: 'sent' });
        expect(await ledger.prompts.get('a')).toEqual(prompt('a', { ...intent, state: 'sent' }));
        await ledger.prompts.update('unknown', 'unlinked', { ...intent, state: 'sent' });
        expect(await ledger.prompts.get('unknown')).toBeUndefined();
        await ledger.prompts.update('a', 'unfinished', linkedTo('j1'));
        await ledger.prompts.update('a', 'unlinked', { ...intent, state: 'sent' });
        const { state, targetsJson } = (await ledger.prompts.get('a')) ?? {};
        expect([state, targetsJson]).toEqual(['live', '["2"]']);
      });

      test('a prompt is live from its acceptance until it is done', async () => {
        await ledger.prompts.insert(prompt('a'));
        expect(await ledger.prompts.live('ann')).toEqual([prompt('a')]);
        const patch = {
          state: 'live' as const,
          promptId: 'told',
          jobId: 'j1',
          graphJson: '{"1":{}}',
          targetsJson: '["1"]',
        };
        await ledger.prompts.update('a', 'unfinished', patch);
        expect(await ledger.prompts.live('ann')).toEqual([prompt('a', patch)]);
        await ledger.prompts.finish('a', OUTCOME);
        expect(await ledger.prompts.live('ann')).toEqual([]);
        const done = prompt('a', { ...patch, ...OUTCOME, state: 'done' });
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(['a']);
        expect(await ledger.prompts.findByJob('ann', 'j1')).toEqual(done);
      });

      test('live prompts come in the order of acceptance, even when the clock was set back', async () => {
        await ledger.prompts.insert(prompt('first', { createdAtMs: 2000 }));
        await ledger.prompts.insert(prompt('second', { createdAtMs: 1000, user: 'bob' }));
        await ledger.prompts.insert(prompt('third', { createdAtMs: 3000 }));
        expect(keysOf(await ledger.prompts.live())).toEqual(['first', 'second', 'third']);
        expect(keysOf(await ledger.prompts.live('ann'))).toEqual(['first', 'third']);
      });

      test('a prompt whose job is gone waits again, for another submission', async () => {
        const plan = { intentJson: '{"key":"a.again1"}', targetsJson: '["1"]' };
        const intent = { ...plan, state: 'outbox', jobId: null } as const;
        await ledger.prompts.insert(prompt('a'));
        await ledger.prompts.update('a', 'live', intent);
        expect(await ledger.prompts.get('a')).toEqual(prompt('a'));
        await ledger.prompts.update('a', 'unfinished', linkedTo('j1'));
        await ledger.prompts.update('a', 'live', intent);
        expect(await ledger.prompts.get('a')).toEqual(prompt('a', intent));
        expect(await ledger.prompts.findByJob('ann', 'j1')).toBeUndefined();
        expect(await ledger.prompts.hasJob('j1')).toBe(false);
        expect(keysOf(await ledger.prompts.live())).toEqual(['a']);
        await ledger.prompts.finish('a', OUTCOME);
        await ledger.prompts.update('a', 'live', intent);
        expect((await ledger.prompts.get('a'))?.state).toBe('done');
      });

      test('the begin of a job is written once, and the end of the prompt overwrites it', async () => {
        await ledger.prompts.insert(prompt('a'));
        const startedAtMs = async () => (await ledger.prompts.get('a'))?.startedAtMs;
        await ledger.prompts.begin('a', 5);
        await ledger.prompts.begin('a', 6);
        expect(await startedAtMs()).toBe(5);
        await ledger.prompts.finish('a', OUTCOME);
        await ledger.prompts.begin('a', 7);
        expect(await startedAtMs()).toBe(OUTCOME.startedAtMs);
      });

      test('a refused submission leaves nothing', async () => {
        await ledger.prompts.insert(prompt('a'));
        await ledger.prompts.remove('a');
        expect(await ledger.prompts.live()).toEqual([]);
        expect(await ledger.prompts.find('ann', 'p-a')).toBeUndefined();
      });

      test('of two prompts with one id the newest is found', async () => {
        await ledger.prompts.insert(prompt('old', { promptId: 'same' }));
        await ledger.prompts.insert(prompt('new', { promptId: 'same' }));
        expect((await ledger.prompts.find('ann', 'same'))?.key).toBe('new');
      });

      test('no user finds the prompt of another', async () => {
        await ledger.prompts.insert(prompt('a', { jobId: 'j1' }));
        await ledger.prompts.finish('a', OUTCOME);
        expect(await ledger.prompts.find('bob', 'p-a')).toBeUndefined();
        expect(await ledger.prompts.findByJob('bob', 'j1')).toBeUndefined();
        expect(await ledger.prompts.outlines('bob')).toEqual([]);
      });

      test('a job counts as linked while a prompt of any user has it, live or done', async () => {
        await ledger.prompts.insert(prompt('none'));
        await ledger.prompts.insert(prompt('live', { user: 'bob' }));
        await ledger.prompts.update('live', 'unfinished', linkedTo('j1'));
        await ledger.prompts.insert(prompt('done', { user: 'cyd', jobId: 'j2' }));
        await ledger.prompts.finish('done', OUTCOME);
        expect(await ledger.prompts.hasJob('j1')).toBe(true);
        expect(await ledger.prompts.hasJob('j2')).toBe(true);
        expect(await ledger.prompts.hasJob('j')).toBe(false);
        await ledger.prompts.clearHistory('cyd');
        expect(await ledger.prompts.hasJob('j2')).toBe(false);
      });

      test('the highest number counts without its sign, and is -1 before the first prompt', async () => {
        expect(await ledger.prompts.highestNumber()).toBe(-1);
        await ledger.prompts.insert(prompt('a', { number: 3 }));
        await ledger.prompts.insert(prompt('b', { number: -7 }));
        expect(await ledger.prompts.highestNumber()).toBe(7);
      });

      test.each([1e300, -1e17, 1.5e9])(
        'the number %s is not one of the counter',
        async (number) => {
          await ledger.prompts.insert(prompt('a', { number: 3 }));
          await ledger.prompts.insert(prompt('b', { number }));
          expect(await ledger.prompts.highestNumber()).toBe(3);
        },
      );

      test('JSON texts are read back unchanged', async () => {
        const graphJson = '{"seed": 18446744073709551615, "x": 5.0, "t": "é🦊\\u0000\\ud800"}';
        await ledger.prompts.insert(prompt('a', { graphJson }));
        expect((await ledger.prompts.find('ann', 'p-a'))?.graphJson).toBe(graphJson);
      });
    });

    describe('history', () => {
      test('is in the order of completion, not of acceptance', async () => {
        await ledger.prompts.insert(prompt('a'));
        await ledger.prompts.insert(prompt('b'));
        await ledger.prompts.finish('b', { ...OUTCOME, endedAtMs: 3000 });
        await ledger.prompts.finish('a', { ...OUTCOME, endedAtMs: 2000 });
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(['b', 'a']);
      });

      test('keeps its order when entries are deleted in between', async () => {
        await finished(ledger, ['a', 'b', 'c']);
        await ledger.prompts.deleteHistory('ann', ['p-c', 'p-a']);
        await finished(ledger, ['d']);
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(['b', 'd']);
      });

      test('deleting touches neither live prompts nor those of others', async () => {
        await finished(ledger, ['a']);
        await finished(ledger, ['b'], 'bob');
        await ledger.prompts.insert(prompt('live'));
        await ledger.prompts.deleteHistory('ann', ['p-a', 'p-b', 'p-live', 'unknown']);
        expect(await ledger.prompts.outlines('ann')).toEqual([]);
        expect(keysOf(await ledger.prompts.outlines('bob'))).toEqual(['b']);
        expect(keysOf(await ledger.prompts.live('ann'))).toEqual(['live']);
      });

      test('outlines that were read before show what has changed since', async () => {
        const outlined = async (user = 'ann') =>
          (await ledger.prompts.outlines(user)).map(({ key }) => key);
        expect(await outlined()).toEqual([]);
        await finished(ledger, ['a', 'b', 'c', 'd']);
        expect(await outlined()).toEqual(['a', 'b', 'c', 'd']);
        await ledger.prompts.insert(prompt('of-bob', { user: 'bob' }));
        await ledger.prompts.finish('of-bob', { ...OUTCOME, statusWord: 'error' });
        expect(await ledger.prompts.outlines('bob')).toMatchObject([{ statusWord: 'error' }]);
        expect(await outlined()).toEqual(['a', 'b', 'c', 'd']);
        await ledger.prompts.deleteHistory('ann', ['p-b']);
        expect(await outlined()).toEqual(['a', 'c', 'd']);
        await ledger.prompts.pruneHistory({ count: 2, bytes: PLENTY });
        expect(await outlined()).toEqual(['c', 'd']);
        await ledger.prompts.clearHistory('ann');
        expect(await outlined()).toEqual([]);
        expect(await outlined('bob')).toEqual(['of-bob']);
      });

      test('outlines are the done prompts of a user in completion order, without their texts', async () => {
        for (const key of ['a', 'b', 'c']) await ledger.prompts.insert(prompt(key));
        await ledger.prompts.insert(prompt('ben', { user: 'ben' }));
        for (const key of ['b', 'ben', 'a']) await ledger.prompts.finish(key, OUTCOME);
        const { statusWord, startedAtMs, endedAtMs } = OUTCOME;
        const { graphJson, extraDataJson } = prompt('a');
        const storedBytes = (OUTCOME.entryJson + OUTCOME.nodeTimesJson + graphJson + extraDataJson)
          .length;
        const rest = { statusWord, createdAtMs: 1000, startedAtMs, endedAtMs, storedBytes };
        expect(await ledger.prompts.outlines('ann')).toEqual([
          { key: 'b', promptId: 'p-b', ...rest },
          { key: 'a', promptId: 'p-a', ...rest },
        ]);
        expect(await ledger.prompts.get('c')).toEqual(prompt('c'));
        expect(await ledger.prompts.get('unknown')).toBeUndefined();
      });

      test('clearing empties the history of that user only', async () => {
        await finished(ledger, ['a', 'b']);
        await finished(ledger, ['c'], 'bob');
        await ledger.prompts.insert(prompt('live'));
        await ledger.prompts.clearHistory('ann');
        expect(await ledger.prompts.outlines('ann')).toEqual([]);
        expect(keysOf(await ledger.prompts.outlines('bob'))).toEqual(['c']);
        expect(keysOf(await ledger.prompts.live())).toEqual(['live']);
      });

      test.each([
        [2, ['b', 'c'], ['x', 'y']],
        [1, ['c'], ['y']],
        [0, [], []],
        [3, ['a', 'b', 'c'], ['x', 'y']],
      ])('pruning to %i keeps the newest of each user', async (limit, ofAnn, ofBob) => {
        await finished(ledger, ['a', 'b', 'c']);
        await finished(ledger, ['x', 'y'], 'bob');
        await ledger.prompts.insert(prompt('live'));
        await ledger.prompts.pruneHistory({ count: limit, bytes: PLENTY });
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(ofAnn);
        expect(keysOf(await ledger.prompts.outlines('bob'))).toEqual(ofBob);
        expect(keysOf(await ledger.prompts.live())).toEqual(['live']);
      });

      /** Done prompts whose entries have so many bytes, and nothing else of weight. */
      async function ended(sizes: { readonly [key: string]: number }, user = 'ann'): Promise<void> {
        for (const [key, size] of Object.entries(sizes)) {
          const entryJson = JSON.stringify('ü'.repeat((size - 2) / 2));
          await ledger.prompts.insert(prompt(key, { user }));
          await ledger.prompts.finish(key, { ...OUTCOME, entryJson });
        }
      }

      test.each([
        ['nothing', 40_000, ['a', 'b', 'c']],
        ['the oldest', 29_000, ['b', 'c']],
        ['all but the newest, which alone is more', 9_000, ['c']],
      ])('pruning to a size in bytes deletes %s', async (_, bytes, left) => {
        await ended({ a: 10_000, b: 10_000, c: 10_000 });
        await ended({ x: 1000, y: 1000 }, 'bob');
        await ledger.prompts.insert(prompt('live'));
        await ledger.prompts.pruneHistory({ count: 100, bytes });
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(left);
        expect(keysOf(await ledger.prompts.outlines('bob'))).toEqual(['x', 'y']);
        expect(keysOf(await ledger.prompts.live())).toEqual(['live']);
      });

      test('what was deleted, and what ended twice, does not count in bytes', async () => {
        await ended({ a: 10_000, b: 10_000, c: 10_000 });
        await ledger.prompts.finish('c', {
          ...OUTCOME,
          entryJson: JSON.stringify('c'.repeat(9998)),
        });
        await ledger.prompts.deleteHistory('ann', ['p-b']);
        await ended({ d: 10_000 });
        await ledger.prompts.pruneHistory({ count: 100, bytes: 31_000 });
        expect(keysOf(await ledger.prompts.outlines('ann')).toSorted()).toEqual(['a', 'c', 'd']);
        await ledger.prompts.clearHistory('ann');
        await ended({ e: 10_000, f: 10_000 });
        await ledger.prompts.pruneHistory({ count: 100, bytes: 21_000 });
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(['e', 'f']);
      });

      test('entries come in the order of the requested keys', async () => {
        await ended({ a: 10, b: 12 });
        await ledger.prompts.insert(prompt('live'));
        expect(await ledger.prompts.entries(['b', 'gone', 'live', 'a'])).toEqual([
          JSON.stringify('ü'.repeat(5)),
          null,
          null,
          JSON.stringify('ü'.repeat(4)),
        ]);
        expect(await ledger.prompts.entries([])).toEqual([]);
      });

      test('a graph that history keeps shortened is stored so', async () => {
        await ledger.prompts.insert(prompt('a', { graphJson: JSON.stringify('x'.repeat(5000)) }));
        const shortened = { graphJson: '{"1":{}}', extraDataJson: '{"a":1}' };
        await ledger.prompts.finish('a', { ...OUTCOME, shortened });
        expect(await ledger.prompts.get('a')).toMatchObject({ ...shortened, state: 'done' });
        const [outline] = await ledger.prompts.outlines('ann');
        const { entryJson, nodeTimesJson } = OUTCOME;
        expect(outline?.storedBytes).toBe(entryJson.length + nodeTimesJson.length + 8 + 7);
      });
    });

    describe('files', () => {
      test('a name belongs to a user, a type and a subfolder', async () => {
        const places = [
          file('x.png'),
          file('x.png', { user: 'bob', assetId: '2' }),
          file('x.png', { type: 'output', assetId: '3' }),
          file('x.png', { subfolder: 'sub', assetId: '4' }),
          file('X.png', { assetId: '5' }),
        ];
        for (const row of places) await ledger.files.put(row);
        for (const row of places) expect(await ledger.files.get(row.user, row)).toEqual(row);
      });

      test('put replaces the file that had the name', async () => {
        await ledger.files.put(file('x.png'));
        await ledger.files.put(file('x.png', { assetId: 'new', hash: 'blake3:1' }));
        expect(await ledger.files.list('ann', 'input')).toEqual([
          file('x.png', { assetId: 'new', hash: 'blake3:1' }),
        ]);
      });

      test('of many claims of one name at once a single one wins', async () => {
        const claims = ['1', '2', '3'].map((assetId) =>
          ledger.files.claim(file('x.png', { assetId })),
        );
        expect(await Promise.all(claims)).toEqual([true, false, false]);
        expect((await ledger.files.get('ann', file('x.png')))?.assetId).toBe('1');
      });

      test('the list of a type is newest first', async () => {
        await ledger.files.put(file('b.png', { modifiedAtMs: 2000 }));
        await ledger.files.put(file('a.png', { modifiedAtMs: 1000 }));
        await ledger.files.put(file('c.png', { modifiedAtMs: 3000 }));
        await ledger.files.put(file('d.png', { type: 'temp' }));
        expect(namesOf(await ledger.files.list('ann', 'input'))).toEqual([
          'c.png',
          'b.png',
          'a.png',
        ]);
      });

      test('a list that was read before shows what has changed since', async () => {
        const listed = async (user = 'ann', type: FileType = 'input') =>
          namesOf(await ledger.files.list(user, type));
        await ledger.assets.insert(asset('gone'));
        for (const user of ['ann', 'bob']) expect(await listed(user)).toEqual([]);
        await ledger.files.put(file('a.png', { assetId: 'gone' }));
        expect(await listed()).toEqual(['a.png']);
        await ledger.files.claim(file('b.png', { modifiedAtMs: 5000 }));
        expect(await listed()).toEqual(['b.png', 'a.png']);
        await ledger.files.put(file('o.png', { type: 'output' }));
        expect(await listed('ann', 'output')).toEqual(['o.png']);
        await ledger.assets.remove('gone');
        expect(await listed()).toEqual(['b.png']);
        await ledger.files.remove('ann', file('b.png'));
        expect(await listed()).toEqual([]);
        await ledger.files.put(file('c.png', { user: 'bob' }));
        expect(await listed('bob')).toEqual(['c.png']);
      });

      test('the newest of a name in any folder, of its user and type, that has an asset', async () => {
        const newest = async (user: string, type: 'input' | 'output' = 'input') =>
          (await newestNamed(ledger.files, user, { type, filename: 'n.png' }))?.subfolder;
        expect(await newest('ann')).toBeUndefined();
        const put = (subfolder: string, modifiedAtMs: number, more: object = {}) =>
          ledger.files.put(file('n.png', { subfolder, modifiedAtMs, ...more }));
        await put('b', 3000);
        await put('a', 2000);
        await put('c', 4000, { user: 'bob' });
        await put('d', 5000, { type: 'output' });
        await put('e', 6000, { assetId: '' });
        await ledger.files.put(file('other.png', { modifiedAtMs: 9000 }));
        expect([await newest('ann'), await newest('bob')]).toEqual(['b', 'c']);
        expect(await newest('ann', 'output')).toBe('d');
        await ledger.files.remove('ann', file('n.png', { subfolder: 'b' }));
        expect(await newest('ann')).toBe('a');
      });

      test('a name is found by its asset, for its user only', async () => {
        await ledger.files.put(file('x.png', { assetId: 'a1' }));
        expect((await ledger.files.byAsset('ann', 'a1'))?.filename).toBe('x.png');
        expect(await ledger.files.byAsset('bob', 'a1')).toBeUndefined();
      });
    });

    describe('jobs', () => {
      test('a job comes back as it was stored, and as it was changed', async () => {
        const stored = job('j1', { order: -0.5, metadataJson: '{"a":"b"}' });
        await ledger.jobs.insert(stored);
        expect(await ledger.jobs.get('j1')).toEqual(stored);
        const patch = { status: 'running', startedAtMs: 1500, metadataJson: null };
        await ledger.jobs.update('j1', patch);
        await ledger.jobs.update('j1', {});
        expect(await ledger.jobs.get('j1')).toEqual({ ...stored, ...patch });
      });

      test('the unfinished come by order, then by age', async () => {
        await ledger.jobs.insert(job('late', { order: 5 }));
        await ledger.jobs.insert(job('early', { order: -5, status: 'running' }));
        await ledger.jobs.insert(job('tie', { order: 5, status: 'canceling' }));
        await ledger.jobs.insert(job('done', { status: 'succeeded' }));
        expect(idsOf(await ledger.jobs.unfinished())).toEqual(['early', 'late', 'tie']);
      });

      test('expire once terminal and past their time', async () => {
        await ledger.jobs.insert(job('due', { status: 'succeeded', expiresAtMs: 2000 }));
        await ledger.jobs.insert(job('kept', { status: 'failed', expiresAtMs: 2001 }));
        await ledger.jobs.insert(job('live', { status: 'running', expiresAtMs: 1000 }));
        expect(idsOf(await ledger.jobs.expiredBy(2000))).toEqual(['due']);
        await ledger.jobs.remove('due');
        expect(await ledger.jobs.get('due')).toBeUndefined();
      });
    });

    describe('assets', () => {
      test('are found by id, by hash and by the newest of a path, for their user', async () => {
        const [old, fresh] = [
          asset('a1', { filePath: 'x.png' }),
          asset('a2', { filePath: 'x.png' }),
        ];
        await ledger.assets.insert(old);
        await ledger.assets.insert(fresh);
        expect(await ledger.assets.get('a1')).toEqual(old);
        expect(await ledger.assets.byHash('ann', 'blake3:a1')).toEqual(old);
        expect(await ledger.assets.byHash('bob', 'blake3:a1')).toBeUndefined();
        expect(await ledger.assets.byFilePath('ann', 'x.png')).toEqual(fresh);
        expect(await ledger.assets.byFilePath('bob', 'x.png')).toBeUndefined();
      });

      test('output paths are those of job outputs that start exactly with the prefix', async () => {
        const paths = ['out_1.png', 'out_2.png', 'out%.png', 'Out_3.png', 'ou.png', 'out🦊.png'];
        for (const filePath of paths)
          await ledger.assets.insert(asset(filePath, { filePath, jobId: 'j' }));
        await ledger.assets.insert(asset('upload', { filePath: 'out_9.png' }));
        await ledger.assets.insert(
          asset('bob', { filePath: 'out_8.png', jobId: 'j', user: 'bob' }),
        );
        const found = await ledger.assets.outputPaths('ann', 'out');
        expect(found.toSorted()).toEqual(
          ['out_1.png', 'out_2.png', 'out%.png', 'out🦊.png'].toSorted(),
        );
        expect(await ledger.assets.outputPaths('ann', 'out_')).toHaveLength(2);
      });

      test('the outputs of a job come in the order they were saved', async () => {
        for (const id of ['z', 'a', 'm']) await ledger.assets.insert(asset(id, { jobId: 'j1' }));
        await ledger.assets.insert(asset('b', { jobId: 'j2' }));
        expect(idsOf(await ledger.assets.ofJob('j1'))).toEqual(['z', 'a', 'm']);
      });

      test('the oldest come first, the expired only when they can expire', async () => {
        await ledger.assets.insert(asset('new', { createdAtMs: 3000, expiresAtMs: 4000 }));
        await ledger.assets.insert(asset('old', { createdAtMs: 1000 }));
        await ledger.assets.insert(asset('mid', { createdAtMs: 2000, expiresAtMs: 4001 }));
        expect(idsOf(await ledger.assets.oldest(2))).toEqual(['old', 'mid']);
        expect(idsOf(await ledger.assets.expiredBy(4000))).toEqual(['new']);
      });

      test('bytes that records share count once, until the last record goes', async () => {
        expect(await ledger.assets.totalBytes()).toBe(0);
        await ledger.assets.insert(asset('a', { hash: 'h1', sizeBytes: 10 }));
        await ledger.assets.insert(asset('b', { hash: 'h1', sizeBytes: 10, user: 'bob' }));
        await ledger.assets.insert(asset('c', { hash: 'h2', sizeBytes: 5 }));
        expect(await ledger.assets.totalBytes()).toBe(15);
        expect(await ledger.assets.countByHash('h1')).toBe(2);
        await ledger.assets.remove('a');
        expect(await ledger.assets.totalBytes()).toBe(15);
        await ledger.assets.remove('b');
        expect(await ledger.assets.countByHash('h1')).toBe(0);
        expect(await ledger.assets.totalBytes()).toBe(5);
      });

      test('the input and temp names of an asset are removed with it; its output name stays reserved, unlisted', async () => {
        await ledger.assets.insert(asset('gone'));
        await ledger.files.put(file('a.png', { assetId: 'gone' }));
        await ledger.files.put(file('t.png', { assetId: 'gone', type: 'temp' }));
        await ledger.files.put(file('o.png', { assetId: 'gone', type: 'output' }));
        await ledger.files.put(file('b.png', { assetId: 'kept' }));
        await ledger.assets.remove('gone');
        expect(namesOf(await ledger.files.list('ann', 'input'))).toEqual(['b.png']);
        expect(await ledger.files.get('ann', file('t.png', { type: 'temp' }))).toBeUndefined();
        expect(await ledger.files.list('ann', 'output')).toEqual([]);
        expect(await ledger.files.claim(file('o.png', { type: 'output' }))).toBe(false);
        expect(await ledger.files.claim(file('a.png'))).toBe(true);
      });
    });

    describe('keys and settings', () => {
      test('an idempotency key makes one job of each user, and a refused one makes none', async () => {
        const insert = (id: string, user: string) => ledger.jobs.insert(job(id, { user }), 'k');
        const inserted = [insert('a1', 'ann'), insert('a2', 'ann'), insert('b1', 'bob')];
        expect(await Promise.all(inserted)).toEqual([true, false, true]);
        expect(idsOf(await ledger.jobs.unfinished())).toEqual(['a1', 'b1']);
        expect(await ledger.jobs.get('a2')).toBeUndefined();
        expect(await ledger.jobs.insert(job('a3'))).toBe(true);
      });

      test('a key that is the id of its job makes that job once', async () => {
        expect(await ledger.jobs.insert(job('a', { workflowJson: '{"1":{}}' }), 'a')).toBe(true);
        expect(await ledger.jobs.insert(job('a'), 'a')).toBe(false);
        expect((await ledger.jobs.get('a'))?.workflowJson).toBe('{"1":{}}');
      });

      test('a job that cannot be inserted claims no key', async () => {
        await ledger.jobs.insert(job('taken'));
        await expect(ledger.jobs.insert(job('taken'), 'k')).rejects.toThrow();
        expect(await ledger.jobs.insert(job('free'), 'k')).toBe(true);
      });

      test('keys older than the given time are removed', async () => {
        await ledger.jobs.insert(job('1', { createdAtMs: 999 }), 'old');
        await ledger.jobs.insert(job('2', { createdAtMs: 1000 }), 'new');
        await ledger.keys.expire(1000);
        expect(await ledger.jobs.insert(job('3'), 'old')).toBe(true);
        expect(await ledger.jobs.insert(job('4'), 'new')).toBe(false);
      });

      test('an asset that cannot be inserted claims no key; jobs have keys of their own', async () => {
        await ledger.assets.insert(asset('taken'));
        await expect(ledger.assets.insert(asset('taken'), 'k')).rejects.toThrow();
        expect(await ledger.jobs.insert(job('1'), 'k')).toBe(true);
        expect(await ledger.assets.insert(asset('free'), 'k')).toBe(true);
        expect(await ledger.assets.insert(asset('again'), 'k')).toBe(false);
        expect(await ledger.assets.get('again')).toBeUndefined();
      });

      test('keys of assets older than the given time are removed', async () => {
        await ledger.assets.insert(asset('1', { createdAtMs: 999 }), 'old');
        await ledger.assets.insert(asset('2', { createdAtMs: 1000 }), 'new');
        await ledger.keys.expire(1000);
        expect(await ledger.assets.insert(asset('3'), 'old')).toBe(true);
        expect(await ledger.assets.insert(asset('4'), 'new')).toBe(false);
      });

      test('settings merge one by one, for each user', async () => {
        await ledger.settings.merge('ann', { a: '1', b: '{"x":1}' });
        await ledger.settings.merge('ann', { b: 'null', ['__proto__']: '2' });
        await ledger.settings.merge('bob', { a: '3' });
        expect(new Map(Object.entries(await ledger.settings.all('ann')))).toEqual(
          new Map([
            ['__proto__', '2'],
            ['a', '1'],
            ['b', 'null'],
          ]),
        );
        expect(await ledger.settings.all('bob')).toEqual({ a: '3' });
        expect(await ledger.settings.all('eve')).toEqual({});
      });
    });

    modelStoresSuite(() => ledger);

    callStoreSuite(() => ledger);

    describe('writes', () => {
      test('a read sees the writes before it, awaited or not', async () => {
        const writing = ledger.prompts.insert(prompt('a'));
        const finishing = ledger.prompts.finish('a', OUTCOME);
        expect(keysOf(await ledger.prompts.outlines('ann'))).toEqual(['a']);
        await Promise.all([writing, finishing]);
      });

      test('one that fails does not fail others of its batch', async () => {
        const results = await Promise.allSettled([
          ledger.prompts.insert(prompt('a')),
          ledger.prompts.insert(prompt('a')),
          ledger.prompts.insert(prompt('b', { number: Number.NaN })),
          ledger.prompts.insert(prompt('c')),
        ]);
        expect(results.map(({ status }) => status)).toEqual([
          'fulfilled',
          'rejected',
          'rejected',
          'fulfilled',
        ]);
        expect(keysOf(await ledger.prompts.live())).toEqual(['a', 'c']);
      });

      test('a rejection has the error of the store as its cause', async () => {
        const failed = ledger.prompts.insert(prompt('b', { number: Number.NaN }));
        await expect(failed).rejects.toMatchObject({
          cause: expect.objectContaining({ message: expect.stringContaining('prompts.number') }),
        });
      });

      test('are refused after closing, and closing twice is allowed', async () => {
        await ledger.close();
        await ledger.close();
        await expect(ledger.prompts.insert(prompt('a'))).rejects.toThrow('could not be written');
      });
    });
  });
}
