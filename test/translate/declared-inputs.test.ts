import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { declaredInputs, someSpec } from '../../src/translate/declared-inputs.ts';
import type { Json, JsonObject } from '../../src/protocol/json.ts';

const INT = ['INT', { min: 1 }];
const IMAGE = ['IMAGE', {}];
const resize = [
  'COMFY_DYNAMICCOMBO_V3',
  {
    options: [
      { key: 'size', inputs: { required: { width: INT }, optional: { crop: ['COMBO', {}] } } },
      { key: 'none', inputs: { required: {} } },
    ],
  },
];
const autogrow = (template: object, input: object = { required: { image: IMAGE } }) => [
  'COMFY_AUTOGROW_V3',
  { template: { input, ...template } },
];
const group = (limits: object) => [
  'COMFY_DYNAMICGROUP_V3',
  { template: { required: { text: ['STRING', {}] }, optional: { size: INT } }, ...limits },
];

/** The names of a node's inputs; `!` marks those that it must have. */
const namesOf = (spec: unknown, given: object) =>
  declaredInputs({ required: { x: spec as Json } }, given as JsonObject).map(
    ({ name, required }) => name + (required ? '!' : ''),
  );

test.each<[string, unknown, object, readonly string[]]>([
  ['a plain input', INT, {}, ['x!']],
  ['a chosen option', resize, { x: 'size' }, ['x!', 'x.width!', 'x.crop']],
  ['an option without inputs', resize, { x: 'none', 'x.width': 5 }, ['x!']],
  ['a value that is no option', resize, { x: 'no such' }, []],
  ['a linked choice', resize, { x: ['1', 0] }, []],
  ['no choice', resize, {}, []],
  [
    'too few of a kind',
    autogrow({ prefix: 'image', min: 2, max: 4 }),
    {},
    ['x.image0!', 'x.image1!'],
  ],
  [
    'more of a kind than needed, with a gap',
    autogrow({ prefix: 'image', min: 1, max: 4 }),
    { 'x.image3': 1, 'x.image1': 1, 'x.image4': 1 },
    ['x.image0!', 'x.image1', 'x.image3'],
  ],
  ['names', autogrow({ names: ['a', 'b'], min: 0 }), { 'x.b': 1, 'x.c': 1 }, ['x.b']],
  [
    'a kind that is optional',
    autogrow({ prefix: 'i', min: 2, max: 4 }, { required: {}, optional: { i: IMAGE } }),
    { 'x.i0': 1 },
    ['x.i0'],
  ],
  [
    'a slot with a link',
    ['COMFY_DYNAMICSLOT_V3', { inputs: { required: { a: INT } } }],
    { x: ['1', 0] },
    ['x!', 'x.a!'],
  ],
  ['a slot without one', ['COMFY_DYNAMICSLOT_V3', { inputs: { required: { a: INT } } }], {}, []],
  ['no rows', group({}), {}, []],
  [
    'rows',
    group({}),
    { 'x.0.text': 'a', 'x.2.size': 1 },
    ['x.0.text!', 'x.0.size', 'x.2.text!', 'x.2.size'],
  ],
  ['an input without options', ['COMFY_DYNAMICCOMBO_V3'], { x: 'a' }, []],
  ['a template without an input', autogrow({ prefix: 'i', min: 1, max: 1 }, {}), {}, []],
  ['a definition of no form', 5, {}, ['x!']],
])('%s', (_, spec, given, names) => {
  expect(namesOf(spec, given)).toEqual(names);
});

test('a service cannot declare more inputs than the original', () => {
  const spec = autogrow({ prefix: 'i', min: 1e9, max: 1e9 });
  expect(namesOf(spec, {})).toHaveLength(100);
});

describe('the rows of a group', () => {
  test.each([
    [{ 'x.0.none': 1 }, 'x.0.none', "Invalid DynamicGroup input key 'x.0.none'"],
    [{ 'x.01.text': 1 }, 'x.01.text', "Invalid DynamicGroup input key 'x.01.text'"],
    [{ 'x.3.text': 1 }, 'x.3.text', 'exceeds the index limit of 2 (max=3)'],
    [{}, 'x', 'received 0 rows; expected between 1 and 3'],
  ])('%j is refused', (given, name, fault) => {
    const inputs = declaredInputs({ required: { x: group({ min: 1, max: 3 }) as Json } }, given);
    expect(inputs).toMatchObject([{ name, fault: expect.stringContaining(fault) as string }]);
  });
});

test('the definitions inside a dynamic input are found', () => {
  const specs: Json[] = [];
  const all = [resize, autogrow({ prefix: 'i' }), group({})] as unknown as Json[];
  const groups = { required: { a: all[0], b: all[1] }, optional: { c: all[2] } };
  const isLast = (spec: Json): boolean => specs.push(spec) === 8;
  expect(someSpec(groups as Parameters<typeof someSpec>[0], isLast)).toBe(true);
  const inside = [[INT, ['COMBO', {}]], [IMAGE], [['STRING', {}], INT]];
  expect(specs).toEqual(all.flatMap((spec, at) => [spec, ...(inside[at] ?? [])]));
});

/** A random input: its definition, a node's values for it, and the inputs that follow. */
type Made = { readonly spec: Json; readonly given: JsonObject; readonly flat: readonly string[] };

const below = (name: string, { given, flat }: Pick<Made, 'given' | 'flat'>) => ({
  given: Object.fromEntries(Object.entries(given).map(([key, value]) => [`${name}${key}`, value])),
  flat: flat.map((key) => `${name}${key}`),
});

const together = (made: readonly Made[]): Made => {
  const parts = made.map((each, index) => below(`.i${index}`, each));
  return {
    spec: { required: Object.fromEntries(made.map(({ spec }, index) => [`i${index}`, spec])) },
    given: Object.assign({}, ...parts.map(({ given }) => given)) as JsonObject,
    flat: parts.flatMap(({ flat }) => flat),
  };
};

const { input } = fc.letrec<{ input: Made; options: Made[] }>((tie) => ({
  options: fc.array(fc.array(tie('input'), { maxLength: 3 }).map(together), {
    minLength: 1,
    maxLength: 3,
  }),
  input: fc.oneof(
    { maxDepth: 3 },
    fc.constant<Made>({ spec: INT, given: { '': 5 }, flat: [''] }),
    fc.record({ min: fc.nat(3), more: fc.nat(3) }).map<Made>(({ min, more }) => {
      const names = Array.from({ length: min + more }, (_, index) => `.v${index}`);
      return {
        spec: autogrow({ prefix: 'v', min, max: min + more + 1 }) as Json,
        given: Object.fromEntries(names.map((name) => [name, 1])),
        flat: names,
      };
    }),
    tie('options').chain((options) =>
      fc.nat(options.length - 1).map<Made>((chosen) => ({
        spec: [
          'COMFY_DYNAMICCOMBO_V3',
          { options: options.map(({ spec }, key) => ({ key: `k${key}`, inputs: spec })) },
        ],
        given: { '': `k${chosen}`, ...options[chosen]?.given },
        flat: ['', ...(options[chosen]?.flat ?? [])],
      })),
    ),
  ),
}));

test('nested definitions give the inputs of the chosen options, and no others', () => {
  fc.assert(
    fc.property(fc.array(input, { maxLength: 4 }).map(together), (made) => {
      const groups = made.spec as { required: JsonObject };
      const node = Object.fromEntries(
        Object.entries(made.given).map(([name, value]) => [name.slice(1), value]),
      );
      const found = declaredInputs(groups, { ...node, other: 1, 'i0.other': 1 });
      expect(found.map(({ name }) => `.${name}`)).toEqual(made.flat);
      expect(found.map(({ ownName }) => ownName)).toEqual(
        made.flat.map((name) => name.split('.').at(-1)),
      );
    }),
  );
});
