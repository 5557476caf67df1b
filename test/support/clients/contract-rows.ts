import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { inspect } from 'node:util';
import type { Finding } from './schemathesis.ts';

/** A finding that stays, by its operation, check, status and the text of the answer. */
type ContractRow = {
  /** The row of `docs/differences.md` that says why. */
  readonly row: string;
  /** Left out: of any operation. */
  readonly operations?: readonly string[];
  readonly check: string;
  readonly status: number;
  readonly body?: RegExp;
  /** Seen only with some generated input: it need not occur at each run. */
  readonly isRare?: true;
};

type Columns = readonly [
  row: string,
  status: number,
  more?: Pick<ContractRow, 'operations' | 'body' | 'isRare'>,
];

/** Rows of a table by the check that finds them. */
export function contractRows(checks: {
  readonly [check: string]: readonly Columns[];
}): readonly ContractRow[] {
  return Object.entries(checks).flatMap(([check, rows]) =>
    rows.map(([row, status, more]) => ({ row, check, status, ...more })),
  );
}

const DIFFERENCES = new URL('../../../docs/differences.md', import.meta.url);

/** Every finding must have its row, and every row a finding. */
export function expectRows(findings: readonly Finding[], rows: readonly ContractRow[]): void {
  const unnamed = findings.filter((finding) => !rows.some((row) => isOf(row, finding)));
  const unused = rows.filter(
    (row) => row.isRare !== true && !findings.some((finding) => isOf(row, finding)),
  );
  const shown = unnamed.slice(0, 20).map((finding) => inspect(finding, { depth: 3 }));
  expect({ findings: shown.join('\n'), count: unnamed.length }).toEqual({ findings: '', count: 0 });
  expect({ rowsWithoutFinding: unused }).toEqual({ rowsWithoutFinding: [] });
}

/** Every row must stand in `docs/differences.md`. */
export function expectDocumented(rows: readonly ContractRow[]): void {
  const text = readFileSync(DIFFERENCES, 'utf8');
  const missing = rows.filter(({ row }) => !text.includes(`\n| \`${row}\` |`));
  expect(missing.map(({ row }) => row)).toEqual([]);
}

function isOf(row: ContractRow, finding: Finding): boolean {
  const isThere = row.operations === undefined || row.operations.includes(finding.operation);
  const isSame = row.check === finding.check && row.status === finding.status;
  return isThere && isSame && (row.body?.test(finding.body) ?? true);
}
