// A code or a name from outside may be that of a member which every object inherits.
import { expect, test } from 'vitest';
import { toV1FileError } from '../../src/dialects/file-error.ts';
import type { ObjectInfo } from '../../src/protocol/v1.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { partialNodeErrors } from '../../src/translate/definition-errors.ts';
import { toError } from '../../src/remote/calls/errors.ts';

const NAMES = ['constructor', '__proto__', 'toString'];

test.each(NAMES)('a refusal with the code %s', (code) => {
  const json = { error: { code, message: 'No.' } };
  const error = toError({ status: 409, headers: {}, json, isPage: false });
  expect(error).toMatchObject({ status: 409, code, message: 'No.' });
  expect(toV1FileError(error)).toMatchObject({ status: 409 });
});

test.each(NAMES)('an input of a class with the name %s', (name) => {
  const input = { required: {}, optional: Object.fromEntries([[name, [['a'], {}]]]) };
  const info = { Make: { input, output_node: true } } as unknown as ObjectInfo;
  const graph = { 1: { class_type: 'Make', inputs: {} } } as Graph;
  const other = { 2: { class_type: 'Other', inputs: {} } } as Graph;
  expect(partialNodeErrors({ ...graph, ...other }, info, ['1', '2'])).toEqual({});
});
