import type { Row } from './measure.ts';
import type { Program } from './program.ts';

/** The settings and helpers of a benchmark run. */
export type Context = {
  /** On the disk under the project; gone afterwards. */
  readonly workDir: string;
  readonly rounds: number;
  /** Stops the program once the benchmark is over, however it ends. */
  readonly keep: (program: Promise<Program>) => Promise<Program>;
};

/** One line of the table, measured. */
export type Bench = {
  readonly name: string;
  /** Programs of the machine it cannot do without. */
  readonly needs: readonly string[];
  run(context: Context): Promise<readonly Row[]>;
};
