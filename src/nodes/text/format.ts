import { type Json, isJsonObject } from '../../protocol/json.ts';
import { pythonRepr } from '../../protocol/python-text.ts';
import { type NodeContext, type NodeDef, fail, type Value } from '../node.ts';
import { LETTERS, autogrow, typedNode } from '../typed-node.ts';
import { formatInSpec } from './format-spec.ts';
import { countChars, createTextPieces, offsetOf } from './pieces.ts';
import { isPixels } from '../tensor.ts';
import { TEXT, plainText } from './text-node.ts';

/** The node that fills values into a text. */
export const FORMAT_NODE: NodeDef = typedNode({
  ...TEXT,
  name: 'StringFormat',
  displayName: 'Format Text',
  description: 'Fills values into a text, in the notation of Python’s str.format.',
  required: {
    values: autogrow({ value: ['*', {}] }, { names: LETTERS, min: 0 }),
    f_string: ['STRING', { default: '{a}', multiline: true }],
  },
  run: ({ values, f_string: template }, context) => ({
    outputs: [formatText(template, values, context)],
  }),
});

type Values = { readonly [name: string]: Value };

/** A text, a doubled brace, a field, or a brace that belongs to none. A field's spec may have fields. */
const PARTS = /[^{}]+|\{\{|\}\}|\{(?<field>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}|[{}]/g;
const FIELD =
  /^(?<name>[^!:[.]*)(?<path>(?:[.[][^!:]*)?)(?:!(?<conversion>[^:]*))?(?::(?<spec>.*))?$/s;

/** Fills the fields of a text as Python's `str.format` does with named values. */
function formatText(template: string, values: Values, context: NodeContext): string {
  const pieces = createTextPieces(context);
  for (const { 0: part, groups, index } of template.matchAll(PARTS)) {
    context.check();
    if (groups?.['field'] !== undefined) pieces.add(filled(groups['field'], values, context));
    else if (part === '{' && index + 1 < template.length)
      return fail('ValueError', "expected '}' before end of string");
    else if (part === '{' || part === '}')
      return fail('ValueError', `Single '${part}' encountered in format string`);
    else pieces.add(part === '{{' || part === '}}' ? part.slice(1) : part);
  }
  return pieces.text();
}

function filled(field: string, values: Values, context: NodeContext): string {
  const { name = '', path = '', conversion, spec = '' } = FIELD.exec(field)?.groups ?? {};
  const value = member(valueOf(name, values), path);
  // A double does not tell 3.0 from 3.
  const isFloat = path === '' && context.inputTypes?.[`values.${name}`] === 'FLOAT';
  const shown = { value: converted(value, { conversion, isFloat }), isFloat };
  const fullSpec = spec.includes('{') ? formatText(spec, values, context) : spec;
  return fullSpec === '' ? plainText(shown) : formatInSpec(shown, fullSpec, context);
}

function valueOf(name: string, values: Values): Value {
  if (/^\d*$/.test(name)) {
    const message = `Replacement index ${Number(name)} out of range for positional args tuple`;
    return fail('IndexError', message);
  }
  if (Object.hasOwn(values, name)) return values[name] as Value;
  return fail('KeyError', pythonRepr(name));
}

const PART = /\[(?<key>[^\]]+)\]|\.[^.[]+/gy;

/** Reads parts such as `[name]` of an object or `[0]` of a text. No value has parts after a point. */
function member(value: Value, path: string): Value {
  const parts = Array.from(path.matchAll(PART));
  if (parts.map(([part]) => part).join('') !== path)
    return fail('ValueError', 'Empty or unfinished part in format string');
  return parts.reduce((whole, { 0: part, groups }) => partOf(whole, part, groups?.['key']), value);
}

function partOf(whole: Value, part: string, key: string | undefined): Value {
  if (key === undefined) return fail('AttributeError', `The value has no part ${part}`);
  const index = /^\d+$/.test(key) ? Number(key) : undefined;
  if (typeof whole === 'string') {
    if (index === undefined) return fail('TypeError', 'indices must be integers');
    if (index < countChars(whole))
      return whole.slice(...[index, index + 1].map((at) => offsetOf(whole, at)));
    return fail('IndexError', 'string index out of range');
  }
  if (!isJsonObject(whole as Json) || isPixels(whole))
    return fail('TypeError', 'the value is not subscriptable');
  const members = whole as unknown as { readonly [name: string]: Value };
  if (index === undefined && Object.hasOwn(members, key)) return members[key] as Value;
  return fail('KeyError', index === undefined ? pythonRepr(key) : key);
}

function converted(
  value: Value,
  { conversion, isFloat }: { readonly conversion: string | undefined; readonly isFloat: boolean },
): Value {
  if (conversion === undefined) return value;
  const text = plainText({ value, isFloat });
  const repr = typeof value === 'string' ? pythonRepr(value) : text;
  if (conversion === 's') return text;
  if (conversion === 'r') return repr;
  if (conversion === 'a') return repr.replaceAll(/[^\0-\x7f]/gu, escaped);
  return fail('ValueError', `Unknown conversion specifier '${conversion}'`);
}

/** Returns the escape sequence of a character as Python's `ascii()` writes it. */
function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code <= 0xff) return `\\x${code.toString(16)}`;
  return code <= 0xffff
    ? `\\u${code.toString(16).padStart(4, '0')}`
    : `\\U${code.toString(16).padStart(8, '0')}`;
}
