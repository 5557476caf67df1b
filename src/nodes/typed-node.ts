import {
  type InputSpec,
  type Inputs,
  type NodeContext,
  type NodeDef,
  NodeFailure,
  type Value,
} from './node.ts';

type Specs = { readonly [name: string]: InputSpec };
type ValuesOf<S extends Specs> = { readonly [Name in keyof S]: ValueOf<S[Name]> };
type Readers = typeof READERS;
type ValueOf<Spec extends InputSpec> = Spec[0] extends infer Type extends keyof Readers
  ? ReturnType<Readers[Type]>
  : string;

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
      const values = [...required, ...present].map(([name, [type]]) => [
        name,
        readerOf(type)(name, given[name]),
      ]);
      return def.run(Object.fromEntries(values), context, given);
    },
  };
}

/** Returns the entry that an input names. In v1, other words can come through a link. */
export function entryOf<T>(
  table: { readonly [name: string]: T },
  name: string,
  failure: readonly [type: string, message: string],
): T {
  if (Object.hasOwn(table, name)) return table[name] as T;
  throw new NodeFailure(failure[0], `${failure[1]} ${name}`);
}

type Given = Value | undefined;

const isKind =
  <K extends 'image' | 'mask'>(kind: K) =>
  (value: Given): value is Extract<Value, { kind: K }> =>
    typeof value === 'object' && value !== null && value.kind === kind;

const reader =
  <T extends Value>(isRight: (value: Given) => value is T, expected: string) =>
  (name: string, value: Given): T =>
    isRight(value) ? value : wrong(name, expected, value);

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
} as const;

function readerOf(type: InputSpec[0]): (name: string, value: Given) => Value {
  return typeof type === 'string' && Object.hasOwn(READERS, type)
    ? READERS[type as keyof typeof READERS]
    : readText;
}

function wrong(name: string, expected: string, value: Given): never {
  throw new NodeFailure('TypeError', `${name}: expected ${expected}, got ${describe(value)}`);
}

function describe(value: Given): string {
  if (value === undefined || value === null) return 'nothing';
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 80))}`;
  if (typeof value !== 'object') return `the ${typeof value} ${String(value)}`;
  return typeof value.kind === 'string' ? `a ${value.kind}` : 'a list or an object';
}
