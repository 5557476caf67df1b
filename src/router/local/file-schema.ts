import type { JsonObject } from '../../protocol/json.ts';

/** Returns the schema of an input field that takes a file. */
export function fileField(what: string): JsonObject {
  return {
    type: 'string',
    description: `${what}: base64, a data: URL, or the id of an asset of yours`,
  };
}

/** Returns the schema of a closed input object. Fields without a default are required. */
export function inputSchema(
  properties: { readonly [name: string]: JsonObject },
  optional: readonly string[] = [],
): JsonObject {
  const required = Object.entries(properties)
    .filter(([name, field]) => !('default' in field) && !optional.includes(name))
    .map(([name]) => name);
  return { type: 'object', additionalProperties: false, required, properties };
}

type Outputs = { readonly [contentType: string]: JsonObject };

/** Returns the schema of an answer in JSON: an object with these fields. */
export function jsonAnswer(properties: { readonly [name: string]: JsonObject }): Outputs {
  return { 'application/json': { type: 'object', required: Object.keys(properties), properties } };
}

type Range = { readonly min: number; readonly max: number; readonly default?: number };

/** Returns the schema of an integer within bounds. Without a default it is required. */
export function integer(
  { min: minimum, max: maximum, ...more }: Range,
  description: string,
): JsonObject {
  return { type: 'integer', minimum, maximum, ...more, description };
}

/** Returns the schema of a choice of several words. The first is the default. */
export function choice(options: readonly string[], description: string): JsonObject {
  return { type: 'string', enum: [...options], default: options[0] ?? '', description };
}
