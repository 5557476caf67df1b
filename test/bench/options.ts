import { parseArgs } from 'node:util';

/** The choice of benches for one run. */
export type BenchOptions = {
  /** Empty: all there are. */
  readonly names: readonly string[];
  readonly rounds: number;
  /** A built checkout of another commit, which is the reference then. */
  readonly against?: string;
};

/** Reads a command line; throws an error whose message says what is wrong with it. */
export function benchOptions(argv: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: { against: { type: 'string' }, rounds: { type: 'string' } },
    allowPositionals: true,
  });
  const { against, rounds = '5' } = values;
  if (!/^[1-9]\d*$/.test(rounds)) throw new Error(`--rounds takes a number from 1, not ${rounds}`);
  return { names: positionals, rounds: Number(rounds), ...(against !== undefined && { against }) };
}
