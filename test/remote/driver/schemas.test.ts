import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/protocol/json.ts';
import { readAsset, readJob, readOutput, readProgress } from '../../../src/remote/schemas.ts';
import { isSameWorkflow } from '../../../src/remote/files/file-references.ts';

describe('a job as the servers write it', () => {
  test('hardly anything is needed', () => {
    const job = readJob({ id: 'j', status: 'queued' });
    expect(job).toMatchObject({
      id: 'j',
      status: 'queued',
      started_at: null,
      completed_at: null,
      queue_position: null,
      progress: null,
      outputs: [],
      error: null,
      urls: { self: '', events: '', cancel: '' },
    });
    expect(Date.parse(job?.created_at ?? '')).not.toBeNaN();
    expect(Date.parse(job?.expires_at ?? '')).not.toBeNaN();
  });

  test.each([
    [null],
    [3],
    ['x'],
    [[]],
    [{}],
    [{ id: '' }],
    [{ id: 'j' }],
    [{ id: 3, status: 'queued' }],
  ])('%j is none', (json) => expect(readJob(json)).toBeUndefined());

  test.each([
    ['status of tomorrow', { status: 'allocated' }, { status: 'running' }],
    ['null outputs', { outputs: null }, { outputs: [] }],
    ['broken outputs', { outputs: [null, 3, { name: 'x' }] }, { outputs: [] }],
    ['half a progress', { progress: { nodes_done: 1 } }, { progress: null }],
    [
      'bad times',
      { started_at: 'soon', completed_at: 7 },
      { started_at: null, completed_at: null },
    ],
    ['text as metadata', { metadata: '{"k":"v"}' }, { metadata: { k: 'v' } }],
    ['list item', { create_time: '2026-01-01T00:00:00Z' }, { created_at: '2026-01-01T00:00:00Z' }],
    ['an error without words', { error: {} }, { error: { code: 'job_failed' } }],
    ['vendor fields', { x_ui: { 1: {} } }, { x_ui: { 1: {} } }],
  ])('%s', (_, fields, expected) => {
    expect(readJob({ id: 'j', status: 'running', ...fields })).toMatchObject(expected);
  });

  test.each([
    ['x_ui', 3],
    ['x_ui', { 1: 'text' }],
    ['x_ui', { 1: { images: 'text' } }],
    ['x_cached_nodes', 'text'],
    ['x_cached_nodes', [3]],
    ['x_workflow', []],
  ])('%s that is %j is left out', (name, wrong) => {
    expect(readJob({ id: 'j', status: 'running', [name]: wrong })).not.toHaveProperty(name);
  });

  test.each([
    ['x_exception_type', 3],
    ['x_current_inputs', { seed: 3 }],
  ])('%s of an error that is %j is left out', (name, wrong) => {
    const job = readJob({ id: 'j', status: 'failed', error: { code: 'c', [name]: wrong } });
    expect(job?.error).toMatchObject({ code: 'c' });
    expect(job?.error).not.toHaveProperty(name);
  });

  test.each([
    ['x_subfolder', 3],
    ['x_temp', 'yes'],
    ['x_websocket', 1],
  ])('%s of an output that is %j is left out', (name, wrong) => {
    const read = readOutput({ id: 'o', [name]: wrong });
    expect(read).toMatchObject({ id: 'o' });
    expect(read).not.toHaveProperty(name);
  });

  test('a time that no clock reaches is none', () => {
    const latest = '+275760-09-13T00:00:00.000Z';
    expect(
      readJob({ id: 'j', status: 'queued', created_at: latest, started_at: latest }),
    ).toMatchObject({
      started_at: null,
    });
  });

  test.each(['a\0b', '\ud800', 'x\udc00'])('an id that no address can carry is none: %j', (bad) => {
    expect(readJob({ id: bad, status: 'queued' })).toBeUndefined();
    expect(readOutput({ id: bad })).toBeUndefined();
  });

  test('unknown fields are dropped', () => {
    expect(readJob({ id: 'j', status: 'queued', colour: 'red' })).not.toHaveProperty('colour');
  });

  test('numbers a double cannot hold do not break it', () => {
    const json = parseJson(
      '{"id":"j","status":"running","progress":{"value":0.3000000000000000000001}}',
    );
    expect(readJob(json)?.progress?.value).toBeCloseTo(0.3);
  });

  test('whatever comes, it is a job or none, and its times are times', () => {
    const wild = fc.record(
      {
        id: fc.oneof(fc.string(), fc.anything()),
        status: fc.oneof(fc.constantFrom('queued', 'running', 'succeeded'), fc.anything()),
        created_at: fc.anything(),
        expires_at: fc.anything(),
        progress: fc.anything(),
        outputs: fc.oneof(fc.array(fc.anything()), fc.anything()),
        error: fc.anything(),
        urls: fc.anything(),
        metadata: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(wild, (json) => {
        const job = readJob(json);
        if (job === undefined) return;
        expect(Date.parse(job.created_at)).not.toBeNaN();
        expect(Date.parse(job.expires_at)).not.toBeNaN();
        expect(Array.isArray(job.outputs)).toBe(true);
      }),
    );
  });
});

describe('outputs and assets', () => {
  test('size 0, no hash, no node and a signed id are fine', () => {
    const id = `${'a'.repeat(200)}.${'b'.repeat(43)}`;
    expect(readOutput({ id, node_id: '', size_bytes: 0, hash: null })).toMatchObject({
      id,
      node_id: '',
      size_bytes: 0,
      hash: null,
      type: 'file',
    });
  });

  test.each([
    ['image/png', 'image'],
    ['video/mp4', 'video'],
    ['model/gltf+json', 'file'],
  ])('a type of tomorrow is what its content type %s says', (content_type, type) => {
    expect(readOutput({ id: 'o', type: '3d', content_type })?.type).toBe(type);
  });

  test('an asset without an expiry has an expired link, not an eternal one', () => {
    expect(Date.parse(readAsset({ id: 'a' })?.url_expires_at ?? '')).toBe(0);
  });

  test('progress stays between 0 and 1', () => {
    expect([-1, 0.5, 7].map((value) => readProgress({ value })?.value)).toEqual([0, 0.5, 1]);
  });
});

describe('the same workflow', () => {
  const ref = { __type: 'core/ASSET', info: { id: 'a' } };
  test.each([
    [{ 1: { a: [1, 'x'] } }, { 1: { a: [1, 'x'] } }, true],
    [{ 1: { a: 1, b: 2 } }, { 1: { b: 2, a: 1 } }, true],
    [{ 1: { image: ref } }, { 1: { image: 'sub/name.png' } }, true],
    [{ 1: { image: ref } }, { 1: { image: 3 } }, false],
    [{ 1: { a: 1 } }, { 1: { a: 2 } }, false],
    [{ 1: { a: 1 } }, { 1: { a: 1 }, 2: {} }, false],
    [{ 1: [1] }, { 1: [1, 2] }, false],
  ])('%j and %j: %s', (sent, kept, isSame) => {
    expect(isSameWorkflow(sent, kept)).toBe(isSame);
  });
});
