import { type Account, FIGURES } from './outcomes.ts';
import type { CrashReport, Round } from './run.ts';

/** The tables of a run, in Markdown: each topology, and each part of it. */
export function tableOf(reports: readonly CrashReport[]): string {
  return [totals(reports), ...reports.map(partsOf)].join('\n\n');
}

function totals(reports: readonly CrashReport[]): string {
  const points = [...new Set(reports.flatMap(({ kills }) => Object.keys(kills)))].toSorted();
  const row = (name: string, of: (report: CrashReport) => number): readonly (string | number)[] => {
    const values = reports.map(of);
    return [name, ...values, values.reduce((sum, value) => sum + value, 0)];
  };
  return markdown([
    ['', ...reports.map(({ topology }) => topology), 'in all'],
    ...points.map((point) => row(`kills: ${point}`, ({ kills }) => kills[point] ?? 0)),
    row('kills', ({ kills }) => Object.values(kills).reduce((sum, count) => sum + count, 0)),
    ...FIGURES.map((figure) => row(NAMES[figure], ({ account }) => account[figure])),
  ]);
}

/** The kills of each part, and what was accepted and went wrong in the rounds that killed that part alone. */
function partsOf({ topology, rounds, killsOfParts }: CrashReport): string {
  const parts = [...new Set([...Object.keys(killsOfParts), ...rounds.map(({ part }) => part)])];
  const sum = (part: string, of: (round: Round) => number): number =>
    rounds.filter((round) => round.part === part).reduce((all, round) => all + of(round), 0);
  return markdown([
    [topology, 'kills', 'of these alone', ...FIGURES.map((figure) => NAMES[figure])],
    ...parts.map((part) => [
      part,
      killsOfParts[part] ?? sum(part, ({ kills }) => kills),
      sum(part, ({ kills }) => kills),
      ...FIGURES.map((figure) => sum(part, ({ account }) => account[figure])),
    ]),
  ]);
}

function markdown(rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  const [head = [], ...others] = rows;
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...others.map(line)].join('\n');
}

const NAMES = {
  prompts: 'prompts accepted',
  unanswered: 'prompts refused or unanswered',
  jobs: 'v2 jobs accepted',
  files: 'files accepted',
  cancelled: 'ended by a cancel',
  threeDeaths: 'ended by three deaths',
  lost: 'lost',
  doubled: 'doubled',
  neverTaken: 'never taken',
  stalled: 'stalled',
} as const satisfies Record<Exclude<keyof Account, 'troubles'>, string>;
