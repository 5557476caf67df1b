import { expect, test } from 'vitest';
import { RULED_ROWS, differenceRows, differencesOf } from '../../src/console/differences.ts';

test('every row that a rule names is a row of docs/differences.md', () => {
  expect(differenceRows(RULED_ROWS).map(({ row }) => row)).toEqual(RULED_ROWS);
});

test.each([
  ['POST', '/prompt', 400, {}, ['bad-input', 'secrets', 'id-limits']],
  ['POST', '/api/prompt', 503, {}, ['queue-limits', 'service-trouble', 'secrets', 'id-limits']],
  ['GET', '/view?filename=a.png&preview=webp', 200, {}, ['picture-formats']],
  ['GET', '/api/v2/jobs', 400, {}, []],
  ['GET', '/prompt', 200, {}, []],
] as const)('%s %s answered %d is concerned by rows', (method, target, status, headers, rows) => {
  expect(differencesOf({ method, target, status }, headers)).toEqual(rows);
});
