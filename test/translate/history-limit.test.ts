import { expect, test } from 'vitest';
import type { Submitted } from '../../src/translate/history.ts';
import { withinLimit } from '../../src/translate/history.ts';
import { type Json, parseJson, stringifyJson } from '../../src/protocol/json.ts';

function submitted(graph: Json, extraData: Json = {}): Submitted {
  return { number: 1, promptId: 'p', graph, extraData, targets: ['9'] } as unknown as Submitted;
}

const PICTURE = `data:image/png;base64,${'A'.repeat(50_000)}`;
const GRAPH = parseJson(
  `{"1":{"class_type":"LoadBase64","inputs":{"image":"${PICTURE}","seed":18446744073709551615}},` +
    '"9":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"a"}}}',
);

test('a graph within the limit is shown as it is', () => {
  const given = submitted(GRAPH);
  expect(withinLimit(given, { sizeBytes: 60_000, limitBytes: 60_000 })).toBe(given);
});

test('of a larger one long texts are shortened, and say so; all else is exact', () => {
  const shown = withinLimit(submitted(GRAPH, { note: 'kept', long: 'ü'.repeat(2000) }), {
    sizeBytes: 60_000,
    limitBytes: 10_000,
  });
  const left = (n: number) => `… (${n} more characters are left out of the history)`;
  expect(stringifyJson(shown.graph as Json)).toBe(
    stringifyJson(GRAPH).replace(PICTURE, `${PICTURE.slice(0, 100)}${left(PICTURE.length - 100)}`),
  );
  expect(shown.extraData).toEqual({ note: 'kept', long: `${'ü'.repeat(100)}${left(1900)}` });
  expect([shown.number, shown.promptId, shown.targets]).toEqual([1, 'p', ['9']]);
});

test('a text is not cut in the middle of a character', () => {
  const text = `${'a'.repeat(99)}${'😀'.repeat(1000)}`;
  const { extraData } = withinLimit(submitted({}, { text }), { sizeBytes: 1e6, limitBytes: 1e5 });
  expect(extraData['text']).toBe(
    `${'a'.repeat(99)}… (2000 more characters are left out of the history)`,
  );
});

test('one that is too large without long texts is left out, and that is said', () => {
  const nodes = Array.from({ length: 500 }, (_, n) => [String(n), { class_type: 'A', inputs: {} }]);
  const shown = withinLimit(submitted(Object.fromEntries(nodes) as Json), {
    sizeBytes: 20_000,
    limitBytes: 10_000,
  });
  expect(shown.graph).toEqual({});
  expect(shown.extraData).toEqual({
    holdover_left_out: expect.stringContaining('larger than history keeps'),
  });
});
