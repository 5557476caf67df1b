import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { type Row, rounded } from './measure.ts';
import { canPin } from './program.ts';

/** The machine, and how busy it was. */
export type Conditions = {
  readonly at: string;
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  readonly commit: string;
  readonly isPinned: boolean;
  readonly load: readonly number[];
};

export type Report = {
  readonly before: Conditions;
  readonly after: Conditions;
  readonly seconds: number;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly troubles: readonly string[];
};

export function conditions(): Conditions {
  return {
    at: new Date().toISOString(),
    cpu: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    memoryGb: Math.round(totalmem() / 1e9),
    kernel: release(),
    node: process.version,
    commit: commit(),
    isPinned: canPin(),
    load: loadavg().map((load) => Number(load.toFixed(2))),
  };
}

function commit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

/** Progress lines while the bench runs. */
export function asText(rows: readonly Row[]): string {
  return rows
    .map((row) => {
      const { figure, unit, reached, target } = row;
      const than = row.reference ? `, reference ${rounded(row.reference.value)}` : '';
      const cpu = row.cpu ? `; CPU ${cpuText(row.cpu)}` : '';
      const noise = row.spread === undefined ? '' : `; ±${percent(row.spread)}`;
      const value = `${rounded(row.holdover)} ${unit}${than}`;
      return `  ${figure}: ${value} → ${reached} (${target}: ${verdict(row)})${cpu}${noise}\n`;
    })
    .join('');
}

/** The table as `docs/performance.md` has it. */
export function asMarkdown(report: Report): string {
  const { before, after, seconds, rounds, rows, troubles } = report;
  const head = ['', 'figure', 'Holdover', 'reference', 'reached', 'target', '', 'CPU', '±'];
  const lines = [head, head.map(() => '---'), ...rows.map(cellsOf)];
  const pinned = before.isPinned ? 'subject on CPU 0, load and origin on CPU 1' : 'not pinned';
  return [
    ...lines.map((cells) => `| ${cells.join(' | ')} |`),
    '',
    `${before.at}, ${before.commit}, Node ${before.node}, ${before.cpus} × ${before.cpu}, ` +
      `${before.memoryGb} GB, Linux ${before.kernel}; ${pinned}; medians of ${rounds} rounds or more; ` +
      `${seconds} s in all; load average ${before.load.join(' ')} before, ${after.load.join(' ')} after.`,
    ...troubles.map((trouble) => `\n**${trouble}**`),
    '',
  ].join('\n');
}

function cellsOf(row: Row): string[] {
  const { reference } = row;
  return [
    row.bench,
    row.figure,
    `${rounded(row.holdover)} ${row.unit}`,
    reference ? `${rounded(reference.value)} ${row.unit} (${reference.name})` : '–',
    row.reached,
    row.target,
    verdict(row),
    row.cpu ? cpuText(row.cpu) : '–',
    row.spread === undefined ? '–' : percent(row.spread),
  ];
}

function cpuText({ holdover, reference, unit }: NonNullable<Row['cpu']>): string {
  if (reference === undefined) return `${rounded(holdover)} ${unit}`;
  const ratio = rounded(holdover / reference);
  return `${rounded(holdover)} : ${rounded(reference)} ${unit} = ${ratio}×`;
}

function verdict({ holds }: Row): string {
  if (holds === undefined) return '–';
  return holds ? 'holds' : 'misses';
}

function percent(share: number): string {
  return Number.isFinite(share) ? `${Math.round(share * 100)} %` : '–';
}
