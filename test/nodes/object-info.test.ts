import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { MODEL_NODES } from '../../src/nodes/model-nodes.ts';
import { objectInfo } from '../../src/nodes/object-info.ts';
import {
  isJsonObject,
  LosslessNumber,
  parseJson,
  stringifyJson,
  type Json,
  type JsonObject,
} from '../../src/protocol/json.ts';

const FIXTURE = new URL('../../fixtures/object_info.json', import.meta.url);

/** Classes of our own, which the original server does not have. */
const OURS: readonly string[] = ['ReactionDiffusion'];

const recorded = readClasses(FIXTURE);
const rendered = parseJson(
  stringifyJson(objectInfo([...ALL_NODES.values(), ...MODEL_NODES])),
) as Classes;

describe('/object_info describes each class as the original does', () => {
  test('with the same members, in the same order', () => {
    const names = Object.keys(recorded);
    const ofEach = (read: (name: string) => Json) =>
      Object.fromEntries(names.map((name) => [name, read(name)]));
    expect(ofEach((name) => comparable(rendered[name]))).toEqual(
      ofEach((name) => comparable(displayed(name, recorded[name]))),
    );
    expect(ofEach((name) => keyOrder(rendered[name] ?? {}))).toEqual(
      ofEach((name) => keyOrder(recorded[name] ?? {})),
    );
  });

  test('has no class that is not recorded, but for those of our own', () => {
    expect(Object.keys(rendered).filter((name) => !(name in recorded))).toEqual(OURS);
  });

  test('keeps bounds to the digit', () => {
    const { value } = (rendered['PrimitiveInt']!['input'] as Spec).required;
    expect(stringifyJson(value ?? null)).toContain('"min":-9223372036854775807');
  });
});

test('every file input is an input of its class', () => {
  const strays = [...ALL_NODES.values()].filter(({ fileInputs = [], required }) =>
    fileInputs.some((name) => !(name in required)),
  );
  expect(strays).toEqual([]);
});

test('the fixture has no texts of another project', () => {
  expect(readFileSync(FIXTURE, 'utf8')).not.toMatch(/tooltip"|"description": "[^"]/);
});

type Classes = { readonly [name: string]: JsonObject };
type Spec = { readonly required: { readonly [name: string]: Json } };

function readClasses(url: URL): Classes {
  return parseJson(readFileSync(url, 'utf8')) as Classes;
}

/** As row `display-name` of `docs/differences.md` has it: the class name where the original sends `null`. */
function displayed(name: string, recording: JsonObject | undefined): JsonObject {
  return { ...recording, display_name: recording?.['display_name'] ?? name };
}

/** Everything but texts, and but the files an upload input lists, which differ per user. */
function comparable(value: Json | undefined): Json {
  if (value instanceof LosslessNumber) return value.toString();
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    return isUpload(items) ? [[], comparable(items[1])] : items.map(comparable);
  }
  if (!isJsonObject(value)) return value ?? null;
  const texts = ['tooltip', 'description', 'output_tooltips'];
  const kept = Object.entries(value).filter(([key]) => !texts.includes(key));
  return Object.fromEntries(kept.map(([key, item]) => [key, comparable(item)]));
}

function isUpload([type, options]: readonly Json[]): boolean {
  return Array.isArray(type) && isJsonObject(options) && options['image_upload'] === true;
}

/** Names in the order they are written: of the class's own keys and of its inputs. */
function keyOrder(info: JsonObject): Json {
  return [Object.keys(info), info['input_order'] ?? null];
}
