import { expect, test } from 'vitest';
import { type CapturedBody, bytesOf } from '../../src/console/traffic/captured-body.ts';
import { answerBody, requestBody } from '../../src/console/traffic/v2-calls.ts';
import { ok } from '../../src/protocol/job-api.ts';

const MB = 1024 * 1024;

const textIn = (body: CapturedBody | undefined): string => (body ? bytesOf(body).toString() : '');

function submitted(workflow: object): unknown {
  const { request } = requestBody('submit', [{ workflow, extraData: {} }]);
  return JSON.parse(textIn(request));
}

test('a workflow is recorded, unless to write it down takes long', () => {
  const node = (text: string) => ({ class_type: 'Note', inputs: { text } });
  expect(submitted({ 1: node('a') })).toEqual({ workflow: { 1: node('a') } });
  const instead = { workflow: '(1 nodes, not recorded)' };
  expect(submitted({ 1: node('a'.repeat(4 * MB)) })).toEqual(instead);
  const links = Array.from({ length: 40_000 }, () => 1);
  expect(submitted({ 1: { class_type: 'Note', inputs: { links } } })).toEqual(instead);
});

test('so is the answer to a call', () => {
  const answer = (value: object) => textIn(answerBody('workflow', ok(value)).response);
  expect(answer({ a: 1 })).toBe('{"a":1}');
  expect(answer({ a: 'a'.repeat(4 * MB) })).toBe('"(large, not recorded)"');
});
