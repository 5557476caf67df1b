import { type Json, type JsonObject, isJsonObject, isList } from '../protocol/json.ts';

/** An input that a node has, or must have, by the definition of its class. */
export type DeclaredInput<Spec extends Json> = {
  /** The name in the graph; inside a dynamic input `resize_type.width`. */
  readonly name: string;
  /** The last part of the name. */
  readonly ownName: string;
  readonly spec: Spec;
  readonly required: boolean;
  /** Why the graph's names for a dynamic input are refused. */
  readonly fault?: string;
};

type Specs<Spec extends Json> = { readonly [name: string]: Spec };

/** The groups of inputs of a class, as `/object_info` shows them. */
type InputGroups<Spec extends Json> = {
  readonly required?: Specs<Spec>;
  readonly optional?: Specs<Spec>;
};

/**
 * Returns the inputs of a node in the order of their declaration. Dynamic inputs are replaced by
 * those that the values of the node ask for.
 */
export function declaredInputs<Spec extends Json>(
  groups: InputGroups<Spec>,
  given: JsonObject,
): readonly DeclaredInput<Spec>[] {
  return [...expandGroups(groups as InputGroups<Json>, given, '')] as DeclaredInput<Spec>[];
}

/** True when a definition in the groups, or inside a dynamic input of them, is wanted. */
export function someSpec(groups: InputGroups<Json>, isWanted: (spec: Json) => boolean): boolean {
  return Object.values({ ...groups.required, ...groups.optional }).some(
    (spec) => isWanted(spec) || nestedGroups(spec).some((nested) => someSpec(nested, isWanted)),
  );
}

/** Returns the definitions inside a dynamic input; empty for another input. */
function nestedGroups(spec: Json): readonly InputGroups<Json>[] {
  const { type, options } = partsOf(spec);
  if (type === AUTOGROW) return [groupsOf(templateOf(options)['input'])];
  if (type === COMBO) return optionsOf(options).map(({ inputs }) => groupsOf(inputs));
  if (type === SLOT) return [groupsOf(options['inputs'])];
  return type === GROUP ? [groupsOf(options['template'])] : [];
}

const AUTOGROW = 'COMFY_AUTOGROW_V3';
const COMBO = 'COMFY_DYNAMICCOMBO_V3';
const SLOT = 'COMFY_DYNAMICSLOT_V3';
const GROUP = 'COMFY_DYNAMICGROUP_V3';

/** The original's limits for a definition. They also bound what a service can make us do. */
const MAX_GROWN_INPUTS = 100;
const MAX_ROWS = 20;

type Expanded = Generator<DeclaredInput<Json>>;

/** How each kind of dynamic input is replaced. */
const EXPANSIONS = new Map([
  [AUTOGROW, expandAutogrow],
  [COMBO, expandCombo],
  [SLOT, expandSlot],
  [GROUP, expandGroup],
]);

function* expandGroups(groups: InputGroups<Json>, given: JsonObject, prefix: string): Expanded {
  for (const group of ['required', 'optional'] as const) {
    for (const [ownName, spec] of Object.entries(groups[group] ?? {})) {
      const input = { name: prefix + ownName, ownName, spec, required: group === 'required' };
      const expand = EXPANSIONS.get(partsOf(spec).type);
      if (expand) yield* expand(input, given);
      else yield input;
    }
  }
}

/** As many inputs of one kind as the node has values for, and at least the smallest number. */
function* expandAutogrow({ name, spec }: DeclaredInput<Json>, given: JsonObject): Expanded {
  const template = templateOf(partsOf(spec).options);
  const { required = {}, optional = {} } = groupsOf(template['input']);
  const [grown] = Object.values({ ...required, ...optional });
  if (grown === undefined) return;
  const min = Object.keys(required).length > 0 ? countOf(template['min'], 0) : 0;
  for (const [index, ownName] of namesIn(template).entries()) {
    const input = { name: `${name}.${ownName}`, ownName, spec: grown, required: index < min };
    if (input.required || Object.hasOwn(given, input.name)) yield input;
  }
}

function namesIn(template: JsonObject): readonly string[] {
  const { names, prefix } = template;
  if (isList(names)) return names.slice(0, MAX_GROWN_INPUTS).map(String);
  const length = Math.min(MAX_GROWN_INPUTS, countOf(template['max'], MAX_GROWN_INPUTS));
  const start = typeof prefix === 'string' ? prefix : '';
  return Array.from({ length }, (_, index) => `${start}${index}`);
}

/** The inputs of the chosen option. A value that is no option leaves nothing, not even an error. */
function* expandCombo(input: DeclaredInput<Json>, given: JsonObject): Expanded {
  const { name, spec } = input;
  const key = Object.hasOwn(given, name) ? given[name] : undefined;
  const chosen = optionsOf(partsOf(spec).options).find((option) => option['key'] === key);
  if (!chosen || key === undefined) return;
  yield input;
  yield* expandGroups(groupsOf(chosen['inputs']), given, `${name}.`);
}

/** A socket and, once something is linked to it, its inputs. */
function* expandSlot(input: DeclaredInput<Json>, given: JsonObject): Expanded {
  const { name, spec } = input;
  if (!Object.hasOwn(given, name)) return;
  yield input;
  yield* expandGroups(groupsOf(partsOf(spec).options['inputs']), given, `${name}.`);
}

/** Rows of the same fields, `name.row.field`. */
function* expandGroup(input: DeclaredInput<Json>, given: JsonObject): Expanded {
  const { name, spec } = input;
  const { options } = partsOf(spec);
  const groups = groupsOf(options['template']);
  const fields = { ...groups.required, ...groups.optional };
  const rows = new Set<number>();
  const limit = Math.min(MAX_ROWS, countOf(options['max'], MAX_ROWS));
  for (const key of Object.keys(given).filter((each) => each.startsWith(`${name}.`))) {
    const [, row = '', field = ''] = GROUP_KEY.exec(key.slice(name.length)) ?? [];
    const fault = Object.hasOwn(fields, field)
      ? rowFault(key, Number(row), limit)
      : `Invalid DynamicGroup input key '${key}'; expected '${name}.<index>.<template field>'.`;
    if (fault !== undefined) return yield { ...input, name: key, fault };
    rows.add(Number(row));
  }
  const min = countOf(options['min'], 0);
  if (rows.size < min) {
    const fault = `DynamicGroup input '${name}' received ${rows.size} rows; expected between ${min} and ${limit}.`;
    return yield { ...input, fault };
  }
  for (const row of [...rows].toSorted((one, other) => one - other))
    yield* expandGroups(groups, given, `${name}.${row}.`);
}

const GROUP_KEY = /^\.(0|[1-9]\d*)\.(.*)$/s;

function rowFault(key: string, row: number, limit: number): string | undefined {
  if (row < limit) return undefined;
  return `DynamicGroup input '${key}' exceeds the index limit of ${limit - 1} (max=${limit}).`;
}

/** Reads a definition, which may come from a service and have any form. */
function partsOf(spec: Json): { readonly type: string; readonly options: JsonObject } {
  const [type, options] = isList(spec) ? spec : [];
  return {
    type: typeof type === 'string' ? type : '',
    options: isJsonObject(options) ? options : {},
  };
}

function templateOf(options: JsonObject): JsonObject {
  return isJsonObject(options['template']) ? options['template'] : {};
}

function optionsOf({ options }: JsonObject): readonly JsonObject[] {
  return isList(options) ? options.filter((option) => isJsonObject(option)) : [];
}

function groupsOf(value: Json | undefined): InputGroups<Json> {
  const { required, optional } = isJsonObject(value) ? value : {};
  return {
    required: isJsonObject(required) ? required : {},
    optional: isJsonObject(optional) ? optional : {},
  };
}

function countOf(value: Json | undefined, absent: number): number {
  return typeof value === 'number' && value >= 0 ? Math.trunc(value) : absent;
}
