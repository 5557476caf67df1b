/** The result of one contestant in one round. */
export type Sample = {
  readonly value: number;
  /** Microseconds of processor time for each operation. */
  readonly cpuUs?: number;
  readonly more?: Readonly<Record<string, number>>;
};

/** One line of the table. */
export type Row = {
  readonly bench: string;
  readonly figure: string;
  readonly unit: string;
  readonly holdover: number;
  readonly reference?: { readonly name: string; readonly value: number };
  /** Holdover's figure over the reference's, or the figure the target speaks of. */
  readonly reached: string;
  readonly target: string;
  /** `undefined`: shown for the picture it gives, there is no target. */
  readonly holds: boolean | undefined;
  readonly cpu?: { readonly holdover: number; readonly reference?: number; readonly unit: string };
  /** (max − min) / median over the rounds. */
  readonly spread?: number;
};

export type Contestant = () => Promise<Sample>;

/** The rounds of each contestant, interleaved; every other round goes the other way about. */
export async function interleave<Name extends string>(
  rounds: number,
  contestants: Readonly<Record<Name, Contestant>>,
): Promise<Record<Name, Sample[]>> {
  const names = Object.keys(contestants) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    Sample[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      samples[name].push(await contestants[name]());
    }
  }
  return samples;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** The smallest value that this share of the values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values);
}

export function valuesOf(samples: readonly Sample[], name?: string): number[] {
  return samples.map(({ value, more }) =>
    name === undefined ? value : (more?.[name] ?? Number.NaN),
  );
}

type Compared = Pick<Row, 'bench' | 'figure' | 'unit'> & {
  readonly samples: readonly Sample[];
  readonly against: { readonly name: string; readonly samples: readonly Sample[] };
  /** `at least`: more is better. */
  readonly target?: { readonly kind: 'at least' | 'at most'; readonly ratio: number };
  readonly value?: string;
  readonly cpuUnit?: string;
};

/** A ratio of two that ran in turns: the median of the ratios of each round. */
export function ratioRow(compared: Compared): Row {
  const { bench, figure, unit, samples, against, target, value, cpuUnit = 'µs/op' } = compared;
  const [ours, theirs] = [valuesOf(samples, value), valuesOf(against.samples, value)];
  const ratios = ours.map((one, i) => one / (theirs[i] ?? Number.NaN));
  const ratio = median(ratios);
  const cpu = cpuOf(samples);
  const cpuReference = cpuOf(against.samples);
  return {
    bench,
    figure,
    unit,
    holdover: median(ours),
    reference: { name: against.name, value: median(theirs) },
    reached: `${rounded(ratio)}×`,
    target: target === undefined ? '–' : `${SIGN[target.kind]} ${target.ratio}×`,
    holds: target && isWithin(ratio, target),
    spread: spreadOf(ratios),
    ...(cpu !== undefined && {
      cpu: {
        holdover: cpu,
        unit: cpuUnit,
        ...(cpuReference !== undefined && { reference: cpuReference }),
      },
    }),
  };
}

const SIGN = { 'at least': '≥', 'at most': '≤' } as const;

function isWithin(
  ratio: number,
  { kind, ratio: bound }: { readonly kind: keyof typeof SIGN; readonly ratio: number },
): boolean {
  return kind === 'at least' ? ratio >= bound : ratio <= bound;
}

/** The difference of two that ran in turns, round by round. */
export function minus(samples: readonly Sample[], others: readonly Sample[]): Sample[] {
  return samples.map(({ value }, i) => ({ value: value - (others[i]?.value ?? Number.NaN) }));
}

/** Median processor time, where every round has one. */
export function cpuOf(samples: readonly Sample[]): number | undefined {
  const known = samples.flatMap(({ cpuUs }) => (cpuUs === undefined ? [] : [cpuUs]));
  return known.length === 0 ? undefined : median(known);
}

/** Three digits that mean something. */
export function rounded(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}
