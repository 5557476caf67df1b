import { expect, test } from 'vitest';
import { jobRoutes } from '../../src/v1/jobs.ts';

const TEXTS = { graphJson: '{}', targetsJson: '[]', number: 1, statusWord: 'success' };
const OUTLINE = {
  createdAtMs: 1,
  startedAtMs: 2,
  endedAtMs: 3,
  statusWord: 'success',
  storedBytes: 9,
};

/** `GET /api/jobs` over two ended prompts, the second with an earlier run and an error of this many characters. */
function open(errorChars: number) {
  const reads: string[] = [];
  const promptIds = { one: 'one', older: 'two', two: 'two' };
  const outlines = Object.entries(promptIds).map(([key, promptId]) => ({
    ...OUTLINE,
    key,
    promptId,
  }));
  const error = ['execution_error', { exception_message: 'e'.repeat(errorChars) }];
  const rowOf = (key: string) => {
    const [statusWord, messages] = key === 'two' ? ['error', [error]] : ['success', []];
    const image = { filename: `${key}.png`, subfolder: '', type: 'output' };
    const entry = { prompt: [], outputs: { 9: { images: [image] } }, status: { messages } };
    const extraDataJson = JSON.stringify({ extra_pnginfo: { workflow: { id: `flow ${key}` } } });
    return {
      ...OUTLINE,
      ...TEXTS,
      key,
      promptId: key,
      statusWord,
      extraDataJson,
      entryJson: JSON.stringify(entry),
    };
  };
  const get = async (key: string) => {
    reads.push(key);
    return rowOf(key);
  };
  const routes = jobRoutes({
    livePrompts: { list: () => [] },
    ledger: { prompts: { outlines: async () => outlines, get } },
    markFetched() {},
  } as unknown as Parameters<typeof jobRoutes>[0]);
  const route = routes.find(({ name }) => name === 'GET /api/jobs');
  const ask = async (query = '', dialect = 'local') => {
    const ctx = { state: { dialect }, set() {} };
    const call = { ctx, caller: { user: 'ann' }, params: {}, query: new URLSearchParams(query) };
    await route?.handle(call as unknown as Parameters<typeof route.handle>[0]);
    const { jobs, pagination } = JSON.parse((ctx as unknown as { body: string }).body) as {
      jobs: Job[];
      pagination: { limit: number | null };
    };
    const { limit } = pagination;
    return { ids: jobs.map(({ id }) => id), jobs, limit, reads: reads.splice(0) };
  };
  return { ask };
}

type Job = { readonly id: string; readonly workflow_id: string; readonly preview_output: object };

test('the texts of an ended prompt are read for its first list only', async () => {
  const { ask } = open(10);
  const first = await ask();
  expect(first.reads).toEqual(['two', 'one']);
  expect(first.jobs).toMatchObject([
    { id: 'two', workflow_id: 'flow two', execution_error: { exception_message: 'eeeeeeeeee' } },
    { id: 'one', workflow_id: 'flow one', preview_output: { filename: 'one.png' } },
  ]);
  expect(await ask()).toEqual({ ...first, reads: [] });
  expect(await ask('workflow_id=flow one')).toMatchObject({ ids: ['one'], reads: [] });
  expect(await ask('output_type=video')).toMatchObject({ ids: [], reads: [] });
  expect(await ask('output_type=image')).toMatchObject({ ids: ['two', 'one'], reads: [] });
  expect((await ask('', 'hosted')).reads).toEqual(['two', 'one']);
});

test.each([
  ['local', null],
  ['hosted', 200],
])('jobsListed: without a limit, a %s call lists %j', async (dialect, limit) => {
  expect((await open(10).ask('', dialect)).limit).toBe(limit);
  expect((await open(10).ask('limit=3', dialect)).limit).toBe(3);
});

test('a long error is not kept in memory', async () => {
  const { ask } = open(100_000);
  await ask();
  expect((await ask()).reads).toEqual(['two']);
});
