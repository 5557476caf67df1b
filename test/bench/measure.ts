/** The results of one round by their names, each with its unit. */
export type Figures = Readonly<Record<string, number>>;

export type Contestants = {
  readonly subject: () => Promise<Figures>;
  readonly reference: () => Promise<Figures>;
};

/** One line of the table. */
export type Row = {
  readonly bench: string;
  readonly figure: string;
  readonly holdover: number;
  readonly reference: { readonly name: string; readonly value: number };
  /** The median of the ratios of each round. */
  readonly ratio: number;
  /** (max − min) / median of these ratios. */
  readonly spread: number;
};

/** Runs both by turns; every other round goes the other way about. The first round, a warm-up, does not count. */
export async function compare(
  { subject, reference }: Contestants,
  options: { readonly bench: string; readonly reference: string; readonly rounds: number },
): Promise<readonly Row[]> {
  const ours: Figures[] = [];
  const theirs: Figures[] = [];
  for (let round = 0; round <= options.rounds; round++) {
    const takeOurs = async () => void ours.push(await subject());
    const takeTheirs = async () => void theirs.push(await reference());
    const turns = [takeOurs, takeTheirs];
    for (const take of round % 2 === 0 ? turns : turns.toReversed()) await take();
  }
  return rowsOf({ ...options, ours: ours.slice(1), theirs: theirs.slice(1) });
}

export function rowsOf(found: {
  readonly bench: string;
  readonly reference: string;
  readonly ours: readonly Figures[];
  readonly theirs: readonly Figures[];
}): readonly Row[] {
  const { bench, reference, ours, theirs } = found;
  return Object.keys(ours[0] ?? {}).map((figure) => {
    const valuesOf = (rounds: readonly Figures[]) => rounds.map((one) => one[figure] ?? Number.NaN);
    const values = { ours: valuesOf(ours), theirs: valuesOf(theirs) };
    const ratios = values.ours.map((value, i) => value / (values.theirs[i] ?? Number.NaN));
    return {
      bench,
      figure,
      holdover: median(values.ours),
      reference: { name: reference, value: median(values.theirs) },
      ratio: median(ratios),
      spread: (Math.max(...ratios) - Math.min(...ratios)) / median(ratios),
    };
  });
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The smallest value that this share of the values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
