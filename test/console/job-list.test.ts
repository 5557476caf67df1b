import { describe, expect, test } from 'vitest';
import { createLazyJson } from '../../src/lib/lazy-json.ts';
import { type JobPageQuery, createJobList } from '../../src/console/job-list.ts';
import { NEW_PROMPT, type PromptRow } from '../../src/ledger/columns.ts';
import type { PromptOutline } from '../../src/ledger/ledger.ts';
import { LivePrompt } from '../../src/prompts/live-prompt.ts';

const QUERY: JobPageQuery = {
  limit: 50,
  cursor: undefined,
  statuses: [],
  clientId: undefined,
  api: undefined,
  text: '',
};

function rowOf(at: number): PromptRow & PromptOutline {
  const graph = { '9': { class_type: 'SaveImage', inputs: { filename_prefix: `out${at}` } } };
  const extra = at % 2 === 0 ? { extra_pnginfo: { workflow: { name: `even ${at}` } } } : {};
  const prompt = [at, `id${at}`, graph, extra, []];
  const status = { status_str: 'success', completed: true, messages: [] };
  return {
    ...NEW_PROMPT,
    key: `key${at}`,
    user: 'local',
    promptId: `id${at}`,
    jobId: `job${at}`,
    number: at,
    clientId: at % 3 === 0 ? 'third' : null,
    createdAtMs: at,
    graphJson: JSON.stringify(graph),
    extraDataJson: JSON.stringify(extra),
    targetsJson: '[]',
    state: 'done',
    intentJson: at % 5 === 0 ? '{}' : '{"key":"k"}',
    entryJson: JSON.stringify({ prompt, outputs: {}, status, meta: {} }),
    statusWord: at % 7 === 0 ? 'error' : 'success',
    startedAtMs: at,
    endedAtMs: at + 1,
    storedBytes: 300,
  };
}

function listOf(count: number, live: readonly LivePrompt[] = []) {
  const rows = new Map(Array.from({ length: count }, (_, at) => [`key${at}`, rowOf(at)]));
  let reads = 0;
  const list = createJobList({
    prompts: {
      outlines: async () => [...rows.values()],
      async get(key: string) {
        reads++;
        return rows.get(key);
      },
    },
    livePrompts: { list: () => live },
  } as unknown as Parameters<typeof createJobList>[0]);
  return {
    rows,
    reads: () => reads,
    ask: (query: Partial<JobPageQuery>) => list('local', { ...QUERY, ...query }),
  };
}

async function readAll(
  ask: ReturnType<typeof listOf>['ask'],
  query: Partial<JobPageQuery> = {},
): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const answer = await ask({ ...query, cursor });
    ids.push(...answer.jobs.map(({ id }) => id));
    cursor = answer.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return ids;
}

describe('the list of jobs', () => {
  test('gives all of history by its cursor, the latest first, each once', async () => {
    const { ask } = listOf(1234);
    const ids = await readAll(ask, { limit: 100 });
    expect(ids).toEqual(Array.from({ length: 1234 }, (_, at) => `id${1233 - at}`));
  });

  test('goes on where it was when jobs are deleted or end meanwhile', async () => {
    const { ask, rows } = listOf(100);
    const first = await ask({ limit: 10 });
    rows.delete('key90');
    rows.set('key100', rowOf(100));
    const second = await ask({ limit: 10, cursor: first.next_cursor ?? '' });
    expect(second.jobs.map(({ id }) => id)).toEqual(
      Array.from({ length: 10 }, (_, at) => `id${89 - at}`),
    );
  });

  test('counts by state, whatever the filter', async () => {
    const { ask } = listOf(70);
    const { counts } = await ask({ statuses: ['failed'], limit: 1 });
    expect(counts).toEqual({ pending: 0, in_progress: 0, completed: 60, failed: 10, cancelled: 0 });
  });

  test('a live job is of the API that it was submitted through', async () => {
    const liveOf = (key: string, isV2Job: boolean): LivePrompt => {
      const identity = { key, promptId: key, number: 1, clientId: null, createdAtMs: 1 };
      const lazy = { graph: createLazyJson({}), extraData: createLazyJson({}) };
      const content = { lazy, targets: [], isV2Job };
      return new LivePrompt({ ...identity, ...content }, { user: 'local' }, undefined as never);
    };
    const { ask } = listOf(0, [liveOf('one', false), liveOf('two', true)]);
    const found = await Promise.all([ask({ api: 'v1' }), ask({ api: 'v2' })]);
    expect(found.map(({ jobs }) => jobs.map(({ id }) => id))).toEqual([['one'], ['two']]);
  });

  test('a state is filtered without reading any row but those shown', async () => {
    const { ask, reads } = listOf(700);
    const answer = await ask({ statuses: ['failed'], limit: 5 });
    expect(answer.jobs.map(({ id }) => id)).toEqual(['id693', 'id686', 'id679', 'id672', 'id665']);
    expect(reads()).toBe(5);
  });

  test('other filters read a bounded number of rows a call, and find all in the end', async () => {
    const { ask, reads } = listOf(1500);
    const answer = await ask({ text: 'EVEN 1000' });
    expect([answer.jobs, answer.next_cursor === null, reads()]).toEqual([[], false, 400]);
    expect(await readAll(ask, { text: 'even 1000' })).toEqual(['id1000']);
    const third = await readAll(ask, { clientId: 'third', text: 'id149' });
    expect(third).toEqual(['id1497', 'id1494', 'id1491']);
    expect((await readAll(ask, { api: 'v2' })).length).toBe(300);
  });

  test('names a job by its workflow, else by its saver and size', async () => {
    const { ask } = listOf(3);
    const { jobs } = await ask({});
    expect(jobs.map(({ name, api, job_id: job }) => [name, api, job])).toEqual([
      ['even 2', 'v1', 'job2'],
      ['out1 · 1 node', 'v1', 'job1'],
      ['even 0', 'v2', 'job0'],
    ]);
  });

  test('has no file to show of a prompt whose only output is a text', async () => {
    const { rows, ask } = listOf(1);
    const entry = JSON.parse(rowOf(0).entryJson ?? '') as object;
    const entryJson = JSON.stringify({ ...entry, outputs: { '1': { text: ['hello'] } } });
    rows.set('key0', { ...rowOf(0), entryJson });
    expect((await ask({})).jobs).toMatchObject([{ preview: null, outputs_count: 0 }]);
  });
});
