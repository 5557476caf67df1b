import { isJsonObject, stringifyJson, type Json, type JsonObject } from '../protocol/json.ts';
import { declaredInputs } from '../translate/declared-inputs.ts';
import {
  type BoundingBox,
  type InputSpec,
  type Inputs,
  type NodeContext,
  type NodeDef,
  fail,
  type Pixels,
  type Value,
} from './node.ts';
import { isPixels } from './tensor.ts';

/** The names of the values of an input that grows by letters. */
export const LETTERS = Array.from('abcdefghijklmnopqrstuvwxyz');

type Specs = { readonly [name: string]: InputSpec };
type ValuesOf<S extends Specs> = { readonly [Name in keyof S]: ValueOf<S[Name]> };
type Readers = typeof READERS;
/** The value that a node gets for an input. */
export type ValueOf<Spec extends InputSpec> =
  Spec extends Autogrow<infer Template>
    ? { readonly [name: string]: ValueOf<Template[keyof Template]> }
    : Spec extends DynamicCombo<infer Option>
      ? ChoiceOf<Option>
      : TypeOf<Spec> extends infer Type extends keyof Readers
        ? ReturnType<Readers[Type]>
        : string;

/** The type of an input, or those with which front ends match it. */
type TypeOf<Spec extends InputSpec> = Spec extends readonly [
  'COMFY_MATCHTYPE_V3',
  { readonly template: { readonly allowed_types: infer Types } },
]
  ? Types
  : Spec[0];

/** An input that grows to several of one kind: their values by name. */
type Autogrow<Template extends Specs> = readonly [
  'COMFY_AUTOGROW_V3',
  { readonly template: { readonly input: { readonly required: Template } } },
];

/** An input that has further inputs, by its value: `choice` and their values. */
type DynamicCombo<Option extends ComboOption> = readonly [
  'COMFY_DYNAMICCOMBO_V3',
  { readonly options: readonly Option[] },
];
type ComboOption = { readonly key: string; readonly inputs: { readonly required: Specs } };
type ChoiceOf<Option extends ComboOption> = Option extends ComboOption
  ? { readonly choice: Option['key'] } & ValuesOf<Option['inputs']['required']>
  : never;

/** Declares an input that grows to several of one kind; `names` and how many there may be. */
export const autogrow = <const Required extends Specs>(
  required: Required,
  names: JsonObject,
): Autogrow<Required> =>
  ['COMFY_AUTOGROW_V3', { template: { input: { required }, ...names } }] as const;

/** Declares an input that is one of several texts, in the newer style. */
export function combo(
  options: readonly string[],
  settings: JsonObject = {},
): readonly ['COMBO', JsonObject] {
  return ['COMBO', { ...settings, multiselect: false, options }];
}

type TypedNode<Required extends Specs, Optional extends Specs> = Omit<
  NodeDef,
  'required' | 'optional' | 'run'
> & {
  readonly required: Required;
  readonly optional?: Optional;
  /** `given`: the values before conversion, where an INT beyond a double is a bigint. */
  run(
    inputs: ValuesOf<Required> & Partial<ValuesOf<Optional>>,
    context: NodeContext,
    given: Inputs,
  ): ReturnType<NodeDef['run']>;
};

/**
 * A node that gets its inputs with their declared types. v1 lets a value of another type into an
 * input and fails only at run time.
 */
export function typedNode<const Required extends Specs, const Optional extends Specs = {}>(
  def: TypedNode<Required, Optional>,
): NodeDef {
  const required = Object.entries<InputSpec>(def.required);
  const optional = Object.entries<InputSpec>(def.optional ?? {});
  return {
    ...def,
    run(given, context) {
      // Absent and null both mean that no value was given.
      const present = optional.filter(([name]) => (given[name] ?? null) !== null);
      const values = [...required, ...present].map(([name, spec]) => [
        name,
        isDynamic(spec) ? readNested(def.name, [name, spec], given) : readOne(name, spec, given),
      ]);
      return def.run(Object.fromEntries(values), context, given);
    },
  };
}

function isDynamic([type]: InputSpec): boolean {
  return type === 'COMFY_AUTOGROW_V3' || type === 'COMFY_DYNAMICCOMBO_V3';
}

/** Reads the inputs that a dynamic one is replaced by. */
function readNested(
  className: string,
  [name, spec]: readonly [string, InputSpec],
  given: Inputs,
): { readonly [name: string]: Value } {
  const inputs = declaredInputs({ required: { [name]: spec } }, given as JsonObject);
  const isChoice = spec[0] === 'COMFY_DYNAMICCOMBO_V3';
  if (isChoice && inputs.length === 0) {
    const message = `${className}.execute() missing 1 required positional argument: '${name}'`;
    return fail('TypeError', message);
  }
  return Object.fromEntries(
    inputs.map((input) => [
      input.name === name ? 'choice' : input.ownName,
      readOne(input.name, input.spec, given),
    ]),
  );
}

function readOne(name: string, [type, options]: InputSpec, given: Inputs): Value {
  const template = options?.['template'];
  const types = isJsonObject(template) ? (template['allowed_types'] ?? type) : type;
  return readerOf(types as InputSpec[0])(name, given[name]);
}

/** Returns the entry that an input names. In v1, other words can come through a link. */
export function entryOf<T>(
  table: { readonly [name: string]: T },
  name: string,
  failure: readonly [type: string, message: string],
): T {
  if (Object.hasOwn(table, name)) return table[name] as T;
  return fail(failure[0], `${failure[1]} ${name}`);
}

type Given = Value | undefined;

const isKind =
  (kind: Pixels['kind']) =>
  (value: Given): value is Pixels =>
    isPixels(value) && value.kind === kind;

const reader =
  <T extends Value>(isRight: (value: Given) => value is T, expected: string) =>
  (name: string, value: Given): T =>
    isRight(value) ? value : wrong(name, expected, value);

const readAny = (_name: string, value: Given): Value => value ?? null;

const readText = reader((value) => typeof value === 'string', 'a text');

/** How the values of each type are read. Choices and all other types are texts. */
const READERS = {
  IMAGE: reader(isKind('image'), 'an image'),
  MASK: reader(isKind('mask'), 'a mask'),
  BOOLEAN: reader((value) => typeof value === 'boolean', 'true or false'),
  /** Cuts off the fraction, as v1's `int()` does. */
  INT(name: string, value: Given): number {
    if (typeof value === 'bigint') return Number(value);
    return typeof value === 'number' && Number.isFinite(value)
      ? Math.trunc(value)
      : wrong(name, 'a whole number', value);
  },
  FLOAT(name: string, value: Given): number {
    if (typeof value === 'bigint') return Number(value);
    return typeof value === 'number' ? value : wrong(name, 'a number', value);
  },
  'IMAGE,MASK': reader(isPixels, 'an image or a mask'),
  '*': readAny,
  'FLOAT,INT,BOOLEAN': reader(
    (value) => typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean',
    'a number',
  ),
  'INT,FLOAT,STRING,BOOLEAN': readAny,
  /** Absent members have v1's defaults. */
  BOUNDING_BOX(name: string, value: Given): BoundingBox {
    if (!isJsonObject(value as Json))
      return fail('AttributeError', `${name}: ${describe(value)} is no region`);
    const { x = 0, y = 0, width = 512, height = 512 } = value as JsonObject;
    const read = (member: Json): number => READERS.INT(name, Number(stringifyJson(member)));
    return { x: read(x), y: read(y), width: read(width), height: read(height) };
  },
} as const;

function readerOf(type: InputSpec[0]): (name: string, value: Given) => Value {
  return typeof type === 'string' && Object.hasOwn(READERS, type)
    ? READERS[type as keyof typeof READERS]
    : readText;
}

function wrong(name: string, expected: string, value: Given): never {
  return fail('TypeError', `${name}: expected ${expected}, got ${describe(value)}`);
}

function describe(value: Given): string {
  if (value === undefined || value === null) return 'nothing';
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 80))}`;
  if (typeof value !== 'object') return `the ${typeof value} ${String(value)}`;
  return isPixels(value) ? `a ${value.kind}` : 'a list or an object';
}
