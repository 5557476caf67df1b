import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { lazily } from '../lib/concurrency.ts';
import { type Json, type JsonObject, LosslessNumber, isJsonObject } from '../protocol/json.ts';
import type { ValidationDetail } from '../protocol/router.ts';
import type { ModelDef } from './model-def.ts';

/** A valid input with its defaults set, or the error of each field. */
type Validated =
  | { readonly ok: true; readonly input: JsonObject }
  | { readonly ok: false; readonly detail: readonly ValidationDetail[] };

/** The check of one model's input. */
export type Validate = (body: Json) => Promise<Validated>;

type Members = { readonly [step: string | number]: Json } | undefined;
type ViolationText = Pick<ValidationDetail, 'type' | 'msg' | 'ctx'>;
type SchemaViolation = ErrorObject<string, Record<string, Json>>;

/**
 * The maximum number of fields, and of items in one. No model needs more, and to validate very many would block other
 * calls.
 */
const MAX_FIELDS = 256;
/** The maximum number of errors in an answer. It allows for all fields, and as many missing or nested ones. */
const MAX_DETAILS = 2 * MAX_FIELDS;
const MAX_ECHO_CHARS = 1024;

/** The JSON types in words that callers of such models know. */
const TYPE_WORDS: { readonly [type: string]: readonly [string, string] } = {
  string: ['string_type', 'a valid string'],
  integer: ['int_type', 'a valid integer'],
  number: ['float_type', 'a valid number'],
  boolean: ['bool_type', 'a valid boolean'],
  object: ['dict_type', 'a valid object'],
  array: ['list_type', 'a valid list'],
};

/** The bound that a schema keyword names, and its message. */
const BOUNDS: { readonly [keyword: string]: readonly [type: string, ctx: string, msg: string] } = {
  minimum: ['greater_than_equal', 'ge', 'Input should be greater than or equal to'],
  maximum: ['less_than_equal', 'le', 'Input should be less than or equal to'],
  pattern: ['string_pattern_mismatch', 'pattern', 'Input should match'],
  minItems: ['too_short', 'min_length', 'Fewest items:'],
  maxItems: ['too_long', 'max_length', 'Most items:'],
};

/**
 * Prepares the check of one model's input, which is the check that its schema document describes.
 */
export function createValidate(def: ModelDef): Validate {
  const { input } = def;
  // Without a schema every object is accepted. Other values were refused before.
  if (input === undefined)
    return async (body) => ({ ok: true, input: withPlainNumbers(body) as JsonObject });
  // Loaded and compiled by the first call: for all models together this would be half of the time of a start.
  const check = lazily(() => compiled(input));
  const lists = listsOf(input);
  return async (body) =>
    refuseTooMany(body, lists) ?? validate(await check.get(), withPlainNumbers(body), body);
}

/** Returns the names of the fields that are lists. */
function listsOf({ properties }: JsonObject): readonly string[] {
  const fields = isJsonObject(properties) ? Object.entries(properties) : [];
  return fields.flatMap(([name, field]) =>
    isJsonObject(field) && field['type'] === 'array' ? [name] : [],
  );
}

async function compiled(schema: object): Promise<ValidateFunction> {
  const { Ajv2020 } = await import('ajv/dist/2020.js');
  return new Ajv2020({ allErrors: true, useDefaults: true, verbose: true }).compile(schema);
}

function validate(check: ValidateFunction, input: Json, body: Json): Validated {
  if (check(input)) return { ok: true, input: input as JsonObject };
  const byLocation = new Map<string, ValidationDetail>();
  for (const violation of (check.errors ?? []) as SchemaViolation[]) {
    const detail = detailOf(violation, body);
    const location = JSON.stringify(detail.loc);
    // Only the first error of each field: it must be corrected first.
    if (!byLocation.has(location) && byLocation.size < MAX_DETAILS)
      byLocation.set(location, detail);
  }
  return { ok: false, detail: [...byLocation.values()] };
}

function refuseTooMany(input: Json, lists: readonly string[]): Validated | undefined {
  if (!isJsonObject(input)) return undefined;
  if (Object.keys(input).length > MAX_FIELDS) return tooLong(['body'], 'fields');
  const list = lists.find((name) => Array.isArray(input[name]) && input[name].length > MAX_FIELDS);
  return list === undefined ? undefined : tooLong(['body', list], 'items');
}

function tooLong(loc: readonly string[], what: 'fields' | 'items'): Validated {
  const msg = `Input should have at most ${MAX_FIELDS} ${what}`;
  return { ok: false, detail: [{ loc, msg, type: 'too_long', ctx: { max_length: MAX_FIELDS } }] };
}

/** Returns a copy with numbers that a computation can use, into which defaults can be written. */
function withPlainNumbers(value: Json): Json {
  if (value instanceof LosslessNumber) return Number(value.value);
  if (Array.isArray(value)) return value.map(withPlainNumbers);
  if (!isJsonObject(value)) return value;
  // `Object.fromEntries` defines members, so a field with the name `__proto__` stays a field.
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withPlainNumbers(v)]));
}

function detailOf(violation: SchemaViolation, body: Json): ValidationDetail {
  const at = violation.instancePath.split('/').slice(1).map(segment);
  const { missingProperty, additionalProperty } = violation.params;
  const named = violation.keyword === 'required' ? missingProperty : additionalProperty;
  const loc = ['body', ...at, ...(typeof named === 'string' ? [named] : [])];
  return {
    loc,
    ...violationText(violation),
    ...(violation.keyword !== 'required' && echo(body, loc.slice(1))),
  };
}

/** Returns an unescaped step of a JSON pointer. A number is the index of an array. */
function segment(text: string): string | number {
  if (/^\d+$/.test(text)) return Number(text);
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}

function violationText({ keyword, params, schema, message }: SchemaViolation): ViolationText {
  const bound = BOUNDS[keyword];
  if (bound) {
    const [type, name, msg] = bound;
    return { type, msg: `${msg} ${String(schema)}`, ctx: { [name]: schema as Json } };
  }
  switch (keyword) {
    case 'required':
      return { type: 'missing', msg: 'Field required' };
    case 'additionalProperties':
      return { type: 'extra_forbidden', msg: 'Extra inputs are not permitted' };
    case 'type': {
      const [type, what] = TYPE_WORDS[params.type as string] ?? ['type_error', 'another type'];
      return { type, msg: `Input should be ${what}` };
    }
    case 'enum': {
      const expected = (schema as Json[]).map((value) => JSON.stringify(value)).join(' or ');
      return { type: 'literal_error', msg: `Input should be ${expected}`, ctx: { expected } };
    }
    default:
      return { type: 'value_error', msg: `Input ${message ?? 'is not accepted'}` };
  }
}

/** Repeats short values only, so that a picture is not sent back because its width is wrong. */
function echo(body: Json, path: readonly (string | number)[]): { readonly input?: Json } {
  let value: Json | undefined = body;
  for (const step of path) value = (value as Members)?.[step];
  const text = value instanceof LosslessNumber ? value.value : value;
  if (value === undefined || (typeof text === 'object' && text !== null)) return {};
  if (typeof text === 'string' && text.length > MAX_ECHO_CHARS) return {};
  return { input: value };
}
