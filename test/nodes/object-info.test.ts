import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { readModelClasses } from '../../src/nodes/model-classes.ts';
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
  stringifyJson({ ...objectInfo(ALL_NODES.values()), ...readModelClasses() }),
) as Classes;

describe('/object_info describes a class as the original does, but for row `display-name`', () => {
  test.each(Object.entries(recorded))('%s', (name, recording) => {
    const expected = { ...recording, display_name: recording['display_name'] ?? name };
    expect(stringifyJson(comparable(rendered[name]))).toBe(stringifyJson(comparable(expected)));
  });

  test('has no class that is not recorded, but for those of our own', () => {
    expect(Object.keys(rendered).filter((name) => !(name in recorded))).toEqual(OURS);
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

function readClasses(url: URL): Classes {
  return parseJson(readFileSync(url, 'utf8')) as Classes;
}

/** Everything but descriptions, which are our own, and but the files an upload input lists, which differ per user. */
function comparable(value: Json | undefined): Json {
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    return isUpload(items) ? [[], comparable(items[1])] : items.map(comparable);
  }
  if (value instanceof LosslessNumber || !isJsonObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === 'description' ? '' : comparable(item),
    ]),
  );
}

function isUpload([type, options]: readonly Json[]): boolean {
  return Array.isArray(type) && isJsonObject(options) && options['image_upload'] === true;
}
