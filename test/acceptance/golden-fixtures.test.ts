import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ASSET_CASES } from '../support/golden/golden-assets-differences.ts';
import { RUN_CASES } from '../support/golden/golden-run-differences.ts';
import { SOCKET_CASES } from '../support/golden/golden-ws-differences.ts';
import { CALL_CASES } from '../support/golden/golden-http-differences.ts';

const pathOf = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const FIXTURES = pathOf('../../fixtures/v1/');
const ORIGINALS = pathOf('../../../shared/golden/');
const PAGE = readFileSync(pathOf('../../docs/differences.md'), 'utf8');
const CASES = [...SOCKET_CASES, ...RUN_CASES, ...CALL_CASES, ...ASSET_CASES];

const rowsUsed = new Set(
  CASES.flatMap(({ expectedDifferences = [] }) => expectedDifferences.map(({ row }) => row)),
);
const rowsWritten = [...PAGE.matchAll(/^\| `([\w-]+)` +\|/gm)].map(([, row]) => row ?? '');

describe('docs/differences.md', () => {
  test('explains each row that a comparison uses, at most 25', () => {
    expect(rowsUsed.size).toBeLessThanOrEqual(25);
    expect([...rowsUsed].filter((row) => !rowsWritten.includes(row))).toEqual([]);
  });

  test('says what the original does, what ours does and why, once each', () => {
    const rows = PAGE.split('\n').filter((line) => line.startsWith('| `'));
    expect(rows.map((row) => row.split(/(?<!\\)\|/).length)).toEqual(rows.map(() => 6));
    expect(rowsWritten).toEqual([...new Set(rowsWritten)]);
  });
});

/** Words of another project that its recordings carry: ours are data without them. */
const WORDS = new Set(['tooltip', 'description']);

function withoutWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutWords);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([key]) => !WORDS.has(key));
  return Object.fromEntries(members.map(([key, member]) => [key, withoutWords(member)]));
}

const parsed = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
/** The version of the original server whose recordings the fixtures are. */
const VERSION = '0.33.0';
const README = `${ORIGINALS}README.md`;
const isHere =
  existsSync(README) && readFileSync(README, 'utf8').split('\n', 1)[0]!.includes(VERSION);
const whether = isHere
  ? ''
  : ` (skipped: ../shared/golden does not hold the recordings of ${VERSION})`;

describe.skipIf(!isHere)(`fixtures equal the recordings they were copied from${whether}`, () => {
  const filesThatDiffer = (folder: string, original: string) =>
    readdirSync(FIXTURES + folder).filter((file) => {
      const recorded = `${ORIGINALS}${original}/${file}`;
      // Inputs and uploads are those of the recordings before these: the same calls were sent again.
      return (
        existsSync(recorded) &&
        !readFileSync(`${FIXTURES}${folder}/${file}`).equals(readFileSync(recorded))
      );
    });

  test.each(['ws', 'assets-on/ws'])('those of sockets in %s, byte for byte', (folder) => {
    expect(filesThatDiffer(folder, folder)).toEqual([]);
  });

  test.each(['http', 'assets-on/http'])('those of calls in %s, but for words', (folder) => {
    const jsonIn = (root: string, files: readonly string[]) =>
      Object.fromEntries(
        files.map((file) => [file, withoutWords(parsed(`${root}${folder}/${file}`))]),
      );
    const files = readdirSync(FIXTURES + folder);
    expect(jsonIn(FIXTURES, files)).toEqual(jsonIn(ORIGINALS, files));
  });

  test('files that calls returned, byte for byte', () => {
    expect(filesThatDiffer('files', 'http/files')).toEqual([]);
  });
});

test('no fixture carries a tooltip of another project', () => {
  const files = ['http', 'assets-on/http'].flatMap((folder) =>
    readdirSync(FIXTURES + folder).map((file) =>
      readFileSync(`${FIXTURES}${folder}/${file}`, 'utf8'),
    ),
  );
  expect(files.filter((text) => text.includes('"tooltip"'))).toEqual([]);
});
