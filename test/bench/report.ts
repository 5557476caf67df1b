import { cpus, loadavg, release } from 'node:os';
import type { Row } from './measure.ts';
import { canPin } from './program.ts';

export type Report = {
  readonly at: string;
  readonly commit: string;
  readonly machine: string;
  readonly rounds: number;
  readonly seconds: number;
  /** Load average before and after. */
  readonly load: readonly (readonly number[])[];
  readonly rows: readonly Row[];
  readonly troubles: readonly string[];
};

export function machine(): string {
  const pinned = canPin() ? 'server on CPU 0, load on CPU 1' : 'not pinned';
  const processors = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`;
  return `Node ${process.version}, ${processors}, Linux ${release()}, ${pinned}`;
}

export function load(): readonly number[] {
  return loadavg().map((value) => Number(value.toFixed(2)));
}

/** The table as `docs/performance.md` has it. */
export function asMarkdown(report: Report): string {
  const { at, commit, rounds, seconds, rows, troubles } = report;
  const head = ['', 'figure', 'Holdover', 'reference', 'ratio', '±'];
  const lines = [head, head.map(() => '---'), ...rows.map(cellsOf)];
  const [before = [], after = []] = report.load;
  return [
    ...lines.map((cells) => `| ${cells.join(' | ')} |`),
    '',
    `${at}, ${commit}, ${report.machine}; medians of ${rounds} rounds; ${seconds} s in all; ` +
      `load average ${before.join(' ')} before, ${after.join(' ')} after.`,
    ...troubles.map((trouble) => `\n**${trouble}**`),
    '',
  ].join('\n');
}

export function cellsOf({ bench, figure, holdover, reference, ratio, spread }: Row): string[] {
  const { name, value } = reference;
  const percent = Number.isFinite(spread) ? `${Math.round(spread * 100)} %` : '–';
  const theirs = `${rounded(value)} (${name})`;
  return [bench, figure, rounded(holdover), theirs, `${rounded(ratio)}×`, percent];
}

/** Three digits that mean something. */
export function rounded(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}
