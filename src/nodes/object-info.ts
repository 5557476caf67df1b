import { readFileSync } from 'node:fs';
import { packageUrl } from '../lib/package-url.ts';
import type { Json } from '../protocol/json.ts';
import type { ClassInfo, ObjectInfo } from '../protocol/v1.ts';
import type { NodeDef } from './node.ts';

type Group = ClassInfo['input'][string];

type SearchWords = {
  /** The words by which a front end's search finds a class, beside its name, with commas. */
  readonly aliases: { readonly [className: string]: string };
  /** The heading under which a front end shows a class on its tab Essentials. */
  readonly essentials: { readonly [className: string]: string };
};

const TEXT = readFileSync(packageUrl('fixtures/search-words.json'), 'utf8');
const SEARCH_WORDS = JSON.parse(TEXT) as SearchWords;

/** Writes node definitions exactly as v1 does, with its order of keys. */
export function objectInfo(defs: Iterable<NodeDef>): ObjectInfo {
  return Object.fromEntries(Array.from(defs, (def) => [def.name, classInfo(def)]));
}

function classInfo(def: NodeDef): ClassInfo {
  const groups = inputGroups(def);
  const isV3 = def.style === 'v3';
  return {
    input: groups,
    input_order: Object.fromEntries(
      Object.entries(groups).map(([group, inputs]) => [group, Object.keys(inputs)]),
    ),
    is_input_list: false,
    output: def.outputs.map(({ type }) => type),
    output_is_list: def.outputs.map(() => false),
    output_name: def.outputs.map(({ type, name = type }) => name),
    ...(isV3 ? { output_tooltips: def.outputs.map(() => null), ...matchTypes(def) } : {}),
    name: def.name,
    // The search of front end 1.4.13 throws on the `null` that the original sends (row
    // `display-name`).
    display_name: def.displayName ?? def.name,
    description: def.description ?? '',
    python_module: def.pythonModule,
    category: def.category,
    output_node: def.outputNode ?? false,
    ...(isV3 ? v3Members(def) : legacyMembers(def)),
  };
}

/**
 * Returns the groups of inputs. v1 names a group only when the class declares it. Hidden inputs are
 * plain in one style, arrays in the other.
 */
function inputGroups(def: NodeDef): ClassInfo['input'] {
  return {
    required: def.required,
    ...(def.optional ? { optional: def.optional } : {}),
    ...(def.hidden ? { hidden: hiddenInputs(def.hidden, def.style) } : {}),
  };
}

function hiddenInputs(hidden: { readonly [name: string]: string }, style: NodeDef['style']): Group {
  const shown = (type: string): Json => (style === 'v3' ? [type] : type);
  return Object.fromEntries(Object.entries(hidden).map(([name, type]) => [name, shown(type)]));
}

function matchTypes({ outputs }: NodeDef): Group {
  const isMatched = outputs.some(({ matchType }) => matchType !== undefined);
  const types = outputs.map(({ matchType = null }) => matchType);
  return { output_matchtypes: isMatched ? types : null };
}

/** Returns the last members of a class of the newer style, which always has all of them. */
function v3Members(def: NodeDef): Group {
  return {
    deprecated: def.deprecated ?? false,
    experimental: def.experimental ?? false,
    dev_only: false,
    api_node: false,
    price_badge: null,
    search_aliases: searchAliases(def.name) ?? null,
    essentials_category: SEARCH_WORDS.essentials[def.name] ?? null,
    has_intermediate_output: def.hasIntermediateOutput ?? false,
  };
}

/** Returns the last members of a class of the older style: flags only when they are true. */
function legacyMembers({ name, deprecated, experimental }: NodeDef): Group {
  const category = SEARCH_WORDS.essentials[name];
  return {
    has_intermediate_output: false,
    ...(deprecated ? { deprecated } : {}),
    ...(experimental ? { experimental } : {}),
    search_aliases: searchAliases(name) ?? [],
    ...(category === undefined ? {} : { essentials_category: category }),
  };
}

/** Returns the words by which a search finds a class, beside its name. */
function searchAliases(className: string): string[] | undefined {
  return SEARCH_WORDS.aliases[className]?.split(', ');
}
