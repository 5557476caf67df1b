import type { Json } from '../protocol/json.ts';
import type { ClassInfo, ObjectInfo } from '../protocol/v1.ts';
import type { DescribedNode } from './node.ts';

type Group = ClassInfo['input'][string];

/** Writes node definitions exactly as v1 does, with its order of keys. */
export function objectInfo(defs: Iterable<DescribedNode>): ObjectInfo {
  return Object.fromEntries(Array.from(defs, (def) => [def.name, classInfo(def)]));
}

function classInfo(def: DescribedNode): ClassInfo {
  const groups = inputGroups(def);
  return {
    input: groups,
    input_order: Object.fromEntries(
      Object.entries(groups).map(([group, inputs]) => [group, Object.keys(inputs)]),
    ),
    output: def.outputs.map(({ type }) => type),
    output_is_list: def.outputs.map(({ isList = false }) => isList),
    output_name: def.outputs.map(({ type, name = type }) => name),
    ...(def.style === 'v3' ? { output_tooltips: def.outputs.map(() => null) } : {}),
    name: def.name,
    // The search of front end 1.4.13 throws on the `null` that the original sends (row
    // `display-name`).
    display_name: def.displayName ?? def.name,
    description: def.description ?? '',
    python_module: def.pythonModule,
    category: def.category,
    output_node: def.outputNode ?? false,
    ...flags(def),
  };
}

/**
 * Returns the groups of inputs. v1 names a group only when the class declares it. Hidden inputs are
 * plain in one style, arrays in the other.
 */
function inputGroups(def: DescribedNode): ClassInfo['input'] {
  return {
    required: def.required,
    ...(def.optional ? { optional: def.optional } : {}),
    ...(def.hidden ? { hidden: hiddenInputs(def.hidden, def.style) } : {}),
  };
}

function hiddenInputs(
  hidden: { readonly [name: string]: string },
  style: DescribedNode['style'],
): Group {
  const shown = (type: string): Json => (style === 'v3' ? [type] : type);
  return Object.fromEntries(Object.entries(hidden).map(([name, type]) => [name, shown(type)]));
}

/** Returns the flags. One style always lists all three, the other only those that are true. */
function flags({ style, deprecated = false, experimental = false }: DescribedNode): Group {
  if (style === 'v3') return { deprecated, experimental, api_node: false };
  return {
    ...(deprecated ? { deprecated } : {}),
    ...(experimental ? { experimental } : {}),
  };
}
