import { expect, test } from 'vitest';
import { inAssetMode } from '../../../src/remote/files/file-references.ts';
import { parseJson, stringifyJson } from '../../../src/protocol/json.ts';
import type { Graph } from '../../../src/protocol/v2.ts';

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** An id of an output as the self-hosted server writes it. */
const signed = (payload: unknown) => `${part(payload)}.${part('a signature')}`;
const ref = (id: string, more: object = {}) => ({ __type: 'core/ASSET', info: { id, ...more } });
const graph = (image: unknown): Graph =>
  ({ '1': { class_type: 'LoadImage', inputs: { image } } }) as Graph;
const imageOf = (workflow: Graph) => workflow['1']?.inputs['image'];

test.each([
  [{ j: 'job', f: 'x.png', s: '', t: 'output' }, 'x.png [output]'],
  [{ j: 'job', f: 'x.png', s: 'a/b', t: 'output' }, 'a/b/x.png [output]'],
  [{ f: 'x.png', s: '', t: 'temp' }, 'x.png [temp]'],
])('an output id that holds the engine’s name %j becomes that name', (payload, name) => {
  for (const mode of ['unknown', 'object', 'string'] as const) {
    expect(imageOf(inAssetMode(graph(ref(signed(payload))), mode))).toBe(name);
  }
});

test.each([
  ['a UUID', '3f1f0d6e-0f0e-4a53-9a8e-2f1a5f9b3c11'],
  ['text with a dot', 'asset.png'],
  ['two parts without a payload', `${part('text')}.${part('x')}`],
  ['an input', signed({ f: 'x.png', s: '', t: 'input' })],
  ['a payload without a folder', signed({ f: 'x.png', t: 'output' })],
  ['an unsigned payload', part({ f: 'x.png', s: '', t: 'output' })],
])('a reference whose id is %s stays a reference', (_what, id) => {
  expect(imageOf(inAssetMode(graph(ref(id)), 'object'))).toEqual(ref(id));
});

test('as strings, references become their file paths; those without one stay', () => {
  expect(imageOf(inAssetMode(graph(ref('id', { file_path: 'input/x.png' })), 'string'))).toBe(
    'input/x.png',
  );
  expect(imageOf(inAssetMode(graph(ref('id')), 'string'))).toEqual(ref('id'));
});

test('everything else of a workflow stays as it was, to the digit', () => {
  const text = '{"1":{"class_type":"A","inputs":{"seed":18446744073709551615,"x":[["2",0],null]}}}';
  const sent = inAssetMode(parseJson(text) as Graph, 'string');
  expect(stringifyJson(sent)).toBe(text);
});
