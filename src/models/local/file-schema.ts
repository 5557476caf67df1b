import type { Json, JsonObject } from '../../protocol/json.ts';

/** Schema of an input field that takes a file. */
export function fileField(what: string): JsonObject {
  return {
    type: 'string',
    description: `${what}: base64, a data: URL, or the id of an asset of yours`,
  };
}

/** Schema of the field that chooses how a file is returned; the first way is the default. */
export function outputField(...ways: readonly ('base64' | 'asset' | 'binary')[]): JsonObject {
  return {
    type: 'string',
    enum: [...ways],
    default: ways[0] ?? 'base64',
    description:
      'base64: within the JSON answer; asset: stored, with its id in the answer; binary: as the body',
  };
}

/** A closed input object; fields without a default are the ones that must be given. */
export function inputSchema(
  properties: { readonly [name: string]: JsonObject },
  optional: readonly string[] = [],
): JsonObject {
  const required = Object.entries(properties)
    .filter(([name, field]) => !('default' in field) && !optional.includes(name))
    .map(([name]) => name);
  return { type: 'object', additionalProperties: false, required, properties };
}

/** A plain answer object with these fields. */
export function answerSchema(properties: { readonly [name: string]: JsonObject }): JsonObject {
  return { type: 'object', required: Object.keys(properties), properties };
}

/** Schema of an answer with a file under `name`, as JSON and as the bare bytes. */
export function fileAnswer(
  name: 'image' | 'audio',
  contentTypes: readonly string[],
  facts: { readonly [name: string]: JsonObject },
): { readonly [contentType: string]: JsonObject } {
  const text: JsonObject = { type: 'string' };
  const file: JsonObject = {
    type: 'object',
    required: ['content_type', 'size_bytes', ...Object.keys(facts)],
    properties: {
      content_type: { type: 'string', enum: [...contentTypes] },
      size_bytes: { type: 'integer' },
      ...facts,
      base64: text,
      asset_id: text,
      url: text,
      hash: text,
    },
  };
  const bare: [string, JsonObject][] = contentTypes.map((type) => [type, {} as JsonObject]);
  return {
    'application/json': answerSchema({ [name]: file }),
    ...(Object.fromEntries(bare) as { [type: string]: JsonObject }),
  };
}

/** A number of an input whose schema makes sure of it. */
export function numberOf(input: JsonObject, name: string): number {
  return input[name] as number;
}

/** A text of an input whose schema makes sure of it. */
export function textOf(input: JsonObject, name: string): string {
  return input[name] as string;
}

/** A whole number within bounds; without a default it must be given. */
export function integer(
  range: { min: number; max: number; default?: number },
  description: string,
) {
  return number('integer', range, description);
}

/** A number within bounds; without a default it must be given. */
export function decimal(
  range: { min: number; max: number; default?: number },
  description: string,
) {
  return number('number', range, description);
}

/** A choice of several words; the first is the default. */
export function choice(options: readonly string[], description: string): JsonObject {
  return { type: 'string', enum: [...options], default: options[0] ?? '', description };
}

function number(
  type: 'integer' | 'number',
  range: { min: number; max: number; default?: number },
  description: string,
): JsonObject {
  const given: { readonly default?: Json } =
    range.default === undefined ? {} : { default: range.default };
  return { type, minimum: range.min, maximum: range.max, ...given, description };
}
