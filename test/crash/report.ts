import type { CrashReport } from './run.ts';

/** The table of a run, in Markdown. */
export function tableOf(reports: readonly CrashReport[]): string {
  const names = [...new Set(reports.flatMap(({ kills }) => Object.keys(kills)))].toSorted();
  const heads = ['', ...reports.map(({ topology }) => topology), 'in all'];
  const row = (name: string, values: readonly number[]): string => {
    const sum = values.reduce((all, value) => all + value, 0);
    return `| ${[name, ...values, sum].join(' | ')} |`;
  };
  const kills = names.map((name) =>
    row(
      `kills: ${name}`,
      reports.map((report) => report.kills[name] ?? 0),
    ),
  );
  const all = reports.map((report) =>
    Object.values(report.kills).reduce((sum, count) => sum + count, 0),
  );
  const figures = Object.entries(FIGURES).map(([key, name]) =>
    row(
      name,
      reports.map(({ account }) => account[key as keyof typeof FIGURES]),
    ),
  );
  const head = [`| ${heads.join(' | ')} |`, `|${' --- |'.repeat(heads.length)}`];
  return [...head, ...kills, row('kills', all), ...figures].join('\n');
}

const FIGURES = {
  prompts: 'prompts accepted',
  jobs: 'v2 jobs accepted',
  files: 'files accepted',
  cancelled: 'ended by a cancel',
  threeDeaths: 'ended by three deaths',
  lost: 'lost',
  doubled: 'doubled',
  neverTaken: 'never taken',
  stalled: 'stalled',
} as const;
