import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { JobEvent } from '../../../src/protocol/job-api.ts';
import { parseJson } from '../../../src/protocol/json.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import {
  ANNA,
  BEN,
  collect,
  graph,
  runJob,
  spooled,
  value,
  words,
} from '../../support/app/jobs.ts';
import { openEngine, startEngine } from './open.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

function nodeEvents(events: readonly JobEvent[]): readonly unknown[] {
  return events.flatMap((event) => {
    if (event.event !== 'x_node') return [];
    const { node_id, phase, ...ui } = event.data;
    return [[phase, node_id, ...Object.values(ui)]];
  });
}

describe('running a graph', () => {
  test.each(['Number', 'Load'])(
    'a %s without inputs, linked by an undeclared input',
    async (name) => {
      const engine = await startEngine();
      const nodes = graph({ 1: ['Show', { value: 'shown', more: ['2', 0] }] });
      const { job } = await runJob(engine, {
        ...nodes,
        2: { class_type: name },
      } as unknown as Graph);
      expect(job).toMatchObject({ status: 'succeeded', x_ui: { 1: { text: ['shown'] } } });
    },
  );

  test('a node called __proto__ shows its results', async () => {
    const engine = await startEngine();
    const { job } = await runJob(engine, graph({ ['__proto__']: ['Show', { value: 'shown' }] }));
    expect(Object.entries(job.x_ui ?? {})).toEqual([['__proto__', { text: ['shown'] }]]);
  });

  test('a prefix that ends in more digits than a number holds is no counter', async () => {
    const engine = await startEngine();
    const saved = async (prefix: string, seed: number) => {
      const nodes = graph({
        1: ['Number', { value: seed }],
        2: ['Save', { value: ['1', 0], prefix }],
      });
      return (await runJob(engine, nodes)).job.outputs.map(({ name }) => name);
    };
    const digits = '9'.repeat(20);
    expect(await saved(`x_${digits}`, 1)).toEqual([`x_${digits}_00001_.txt`]);
    expect(await saved('x', 2)).toEqual(['x_00001_.txt']);
    expect(await saved('x', 3)).toEqual(['x_00002_.txt']);
    expect(await saved('x_999999999999999', 4)).toEqual(['x_999999999999999_00001_.txt']);
    expect(await saved('x', 5)).toEqual(['x_1000000000000000_.txt']);
    expect(await saved('x', 6)).toEqual(['x_1000000000000001_.txt']);
  });

  test('emits, per node, started, progress, previews before their step, and finished', async () => {
    const engine = await startEngine();
    const { events } = await runJob(
      engine,
      graph({
        1: ['Number', { value: 5 }],
        2: ['Steps', { value: ['1', 0], steps: 2 }],
        3: ['Show', { value: ['2', 0] }],
      }),
    );
    expect(words(events)).toEqual([
      'status queued',
      'status running',
      'progress 0/3 - -',
      'started 1',
      'progress 0/3 1 -',
      'finished 1',
      'started 2',
      'progress 1/3 2 -',
      'preview 2',
      'progress 1/3 2 1',
      'preview 2',
      'progress 1/3 2 2',
      'finished 2',
      'started 3',
      'progress 2/3 3 -',
      'finished 3',
      'progress 3/3 - -',
      'status succeeded',
    ]);
  });

  test.each<[string, Graph, string[]]>([
    [
      'keeps every digit of a big seed',
      graph({
        1: ['Number', { value: parseJson('18446744073709551615') }],
        4: ['Show', { value: ['1', 0] }],
      }),
      ['18446744073709551615'],
    ],
    [
      'takes slot -1 as the last output',
      graph({
        1: ['Number', { value: 8 }],
        4: ['Show', { value: ['1', -1] }],
      }),
      ['8'],
    ],
  ])('%s', async (_, workflow, text) => {
    const engine = await startEngine();
    const { job } = await runJob(engine, workflow);
    expect(job.x_ui?.['4']).toEqual({ text });
  });

  test('a failing node tells its evaluated inputs, pixels only by their shape', async () => {
    const engine = await startEngine();
    const { job } = await runJob(
      engine,
      graph({
        1: ['Image', { value: 0.5 }],
        2: ['Fail', { image: ['1', 0], message: 'é' }],
        3: ['Sink', { value: ['2', 0] }],
      }),
    );
    expect(job.error).toMatchObject({
      message: 'é',
      x_exception_type: 'ValueError',
      x_current_inputs: { image: ['IMAGE of shape [1, 2, 2, 3]'], message: ['é'] },
    });
    expect(job.error?.traceback).not.toContain(process.cwd());
  });

  test('an error of our own is a RuntimeError', async () => {
    const engine = await startEngine();
    const { job } = await runJob(
      engine,
      graph({ 1: ['Bug', { seed: 1 }], 2: ['Sink', { value: ['1', 0] }] }),
    );
    expect(job.error).toMatchObject({
      code: 'node_execution_error',
      x_exception_type: 'RuntimeError',
    });
  });
});

const CHAIN = graph({
  1: ['Number', { value: 5 }],
  2: ['Add', { a: ['1', 0], b: 1 }],
  3: ['Save', { value: ['2', 0], prefix: 'chain' }],
});

describe('the cache', () => {
  test('a rerun executes nothing and shows the same files', async () => {
    const engine = await startEngine();
    const first = await runJob(engine, CHAIN);
    const again = await runJob(engine, CHAIN);
    expect(words(again.events)).toEqual([
      'status queued',
      'status running',
      'progress 2/3 - -',
      'output 3',
      'finished 3',
      'progress 3/3 - -',
      'status succeeded',
    ]);
    const running = again.events[1];
    expect(running).toMatchObject({ data: { status: 'running', x_cached_nodes: ['1', '2', '3'] } });
    expect(again.job.x_cached_nodes).toEqual(['1', '2', '3']);
    expect(again.job.x_ui).toEqual(first.job.x_ui);
    expect(again.job.outputs.map(({ id, name }) => [id, name])).toEqual(
      first.job.outputs.map(({ id, name }) => [id, name]),
    );
    expect(again.job.outputs[0]).toMatchObject({
      id: first.job.outputs[0]?.id,
      job_id: again.job.id,
    });
    expect(again.events).toContainEqual(
      expect.objectContaining({ data: expect.objectContaining({ job_id: again.job.id }) }),
    );
    const asset = value(await engine.asset(ANNA, again.job.outputs[0]?.id ?? ''));
    expect(asset.job_id).toBe(first.job.id);
  });

  test('runs only what changed, and a renamed node has not', async () => {
    const engine = await startEngine();
    await runJob(engine, CHAIN);
    const { job, events } = await runJob(
      engine,
      graph({
        10: ['Number', { value: 5 }],
        2: ['Add', { a: ['10', 0], b: 2 }],
        3: ['Save', { value: ['2', 0], prefix: 'chain' }],
      }),
    );
    expect(job.x_cached_nodes).toEqual(['10']);
    expect(nodeEvents(events).map((event) => (event as string[]).slice(0, 2))).toEqual([
      ['started', '2'],
      ['finished', '2'],
      ['started', '3'],
      ['finished', '3'],
    ]);
    expect(job.outputs[0]?.name).toBe('chain_00002_.txt');
  });

  test('is not shared between users', async () => {
    const engine = await startEngine();
    await runJob(engine, CHAIN);
    const { job } = await runJob(engine, CHAIN, { caller: BEN });
    expect(job.x_cached_nodes).toEqual([]);
    expect((await runJob(engine, CHAIN)).job.x_cached_nodes).toEqual(['1', '2', '3']);
  });

  test('a cached output node that shows nothing finishes with null', async () => {
    const engine = await startEngine();
    const sink = graph({ 1: ['Number', { value: 5 }], 2: ['Sink', { value: ['1', 0] }] });
    expect(nodeEvents((await runJob(engine, sink)).events)).toContainEqual(['finished', '2']);
    expect(nodeEvents((await runJob(engine, sink)).events)).toEqual([['finished', '2', null]]);
  });

  test('a cached intermediate output is shown again, without a run of its node', async () => {
    const engine = await startEngine();
    const glance = graph({
      1: ['Number', { value: 5 }],
      2: ['Glance', { value: ['1', 0] }],
      3: ['Show', { value: ['2', 0] }],
    });
    await runJob(engine, glance);
    const { job, events } = await runJob(engine, glance);
    expect(job.x_ui).toEqual({ 2: { text: ['5'] }, 3: { text: ['5'] } });
    expect(nodeEvents(events)).toEqual([['finished', '3', { text: ['5'] }]]);
  });

  test('a node that always runs does, and all behind it', async () => {
    const engine = await startEngine();
    const workflow = graph({
      1: ['Number', { value: 5 }],
      2: ['Always', { value: ['1', 0] }],
      3: ['Show', { value: ['2', 0] }],
    });
    await runJob(engine, workflow);
    expect((await runJob(engine, workflow)).job.x_cached_nodes).toEqual(['1']);
  });

  test('what a failed run had finished is kept', async () => {
    const engine = await startEngine();
    const workflow = graph({
      1: ['Number', { value: 1 }],
      2: ['Fail', { image: ['1', 0], message: 'x' }],
      3: ['Sink', { value: ['2', 0] }],
    });
    await runJob(engine, workflow);
    expect((await runJob(engine, workflow)).job.x_cached_nodes).toEqual(['1']);
  });

  test('the same name with other bytes runs again', async () => {
    const engine = await startEngine();
    const workflow = graph({ 1: ['Load', { file: 'note.txt' }], 2: ['Show', { value: ['1', 0] }] });
    const texts: unknown[] = [];
    for (const content of ['one', 'two']) {
      const file = await spooled(content);
      const upload = { file, contentType: 'text/plain', filePath: 'input/note.txt' };
      value(await engine.createAsset(ANNA, upload));
      texts.push((await runJob(engine, workflow)).job.x_ui?.['2']);
    }
    expect(texts).toEqual([{ text: ['one'] }, { text: ['two'] }]);
  });
});

describe('the prompt that saved files carry', () => {
  test("is the caller's own, with the sha256 of each file read", async () => {
    const engine = await startEngine();
    const upload = {
      file: await spooled('bytes'),
      contentType: 'text/plain',
      filePath: 'input/a.txt',
    };
    const { id } = value(await engine.createAsset(ANNA, upload));
    const prompt = graph({ 1: ['Load', { file: 'a.txt' }], 2: ['Meta', { value: ['1', 0] }] });
    const workflow = graph({
      1: ['Load', { file: { __type: 'core/ASSET', info: { id } } }],
      2: ['Meta', { value: ['1', 0] }],
    });
    const { job } = await runJob(engine, workflow, {
      provenance: { prompt, extraPngInfo: { workflow: { é: 1 } } },
    });
    const sha256 = createHash('sha256').update('bytes').digest('hex');
    expect(job.x_ui?.['2']).toEqual({
      prompt: [
        '{"1": {"class_type": "Load", "inputs": {"file": "a.txt"}, "is_changed": ["' +
          sha256 +
          '"]}, "2": {"class_type": "Meta", "inputs": {"value": ["1", 0]}}}',
      ],
      extra: [{ workflow: { é: 1 } }],
    });
  });

  test('is the workflow with file names in place of references when the caller gave none', async () => {
    const engine = await startEngine();
    const upload = {
      file: await spooled('bytes'),
      contentType: 'text/plain',
      filePath: 'output/a.txt',
    };
    const { id } = value(await engine.createAsset(ANNA, upload));
    const file = { __type: 'core/ASSET', info: { id } };
    const { job } = await runJob(
      engine,
      graph({ 1: ['Load', { file }], 2: ['Meta', { value: ['1', 0] }] }),
    );
    expect(job.x_ui?.['2']?.['prompt']).toEqual([
      expect.stringContaining('"file": "a.txt [output]"'),
    ]);
    expect(job.x_ui?.['2']?.['extra']).toEqual([null]);
  });
});

describe('file names in workflows', () => {
  test.each([
    ['note.txt', 'input/note.txt'],
    ['sub/note.txt', 'input/sub/note.txt'],
    ['note.txt [input]', 'input/note.txt'],
    ['note.txt [output]', 'output/note.txt'],
    ['note.txt [temp]', 'temp/note.txt'],
    ['note.txt', 'note.txt'],
  ])('%s names the asset at %s', async (name, filePath) => {
    const engine = await startEngine();
    value(
      await engine.createAsset(ANNA, {
        file: await spooled('found'),
        contentType: 'text/plain',
        filePath,
      }),
    );
    const { job } = await runJob(
      engine,
      graph({ 1: ['Load', { file: name }], 2: ['Show', { value: ['1', 0] }] }),
    );
    expect(job.x_ui?.['2']).toEqual({ text: ['found'] });
  });

  test("free text that equals a file's name stays text", async () => {
    const engine = await startEngine();
    value(
      await engine.createAsset(ANNA, {
        file: await spooled('x'),
        contentType: 'text/plain',
        filePath: 'input/a.txt',
      }),
    );
    const { job } = await runJob(engine, graph({ 1: ['Show', { value: 'a.txt' }] }));
    expect(job.x_ui?.['1']).toEqual({ text: ['a.txt'] });
  });

  test('whose bytes are gone when the job begins fail the node that reads them', async () => {
    const dataDir = await tempFolder('data');
    const engine = await openEngine({ dataDir });
    const file = await spooled('x');
    const upload = { file, contentType: 'text/plain', filePath: 'input/a.txt' };
    value(await engine.createAsset(ANNA, upload));
    const workflow = graph({ 1: ['Load', { file: 'a.txt' }], 2: ['Sink', { value: ['1', 0] }] });
    const { id } = value(await engine.submit(ANNA, { workflow, extraData: {} }));
    await rm(path.join(dataDir, 'blobs'), { recursive: true });
    engine.start();
    await collect(engine, id);
    expect(value(await engine.get(ANNA, id)).error).toMatchObject({
      message: 'the bytes of a.txt are gone',
      node_id: '1',
      x_exception_type: 'FileNotFoundError',
    });
  });
});
