import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type HoldoverOptions, startHoldover } from './holdover.ts';
import type { Contestants, Figures } from './measure.ts';
import type { Program } from './program.ts';

/** A built checkout of this repository, and its commit. */
export type Checkout = { readonly dir: string; readonly commit: string };

/** The settings and helpers of a run. */
export type Context = {
  /** On the disk under the project; gone afterwards. */
  readonly workDir: string;
  /** The reference; without it, a program that does the same work is the reference. */
  readonly checkout?: Checkout;
  /** Stops the program once the bench is over, however it ends. */
  readonly keep: (program: Promise<Program>) => Promise<Program>;
};

export type Bench = {
  readonly name: string;
  /** Commands of the machine that it cannot do without. */
  readonly needs: readonly string[];
  /** The program that does the same work; without one, it runs against checkouts only. */
  readonly program?: string;
  prepare(context: Context): Promise<Contestants>;
};

/** Throws where nothing is built. */
export function checkoutAt(path: string): Checkout {
  const dir = resolve(path);
  if (!existsSync(join(dir, 'dist/main.js'))) throw new Error(`${dir} has no dist/main.js`);
  return { dir, commit: commitOf(dir) };
}

export function commitOf(dir: string): string {
  const args = ['-C', dir, 'describe', '--always', '--dirty'];
  return execFileSync('git', args, { encoding: 'utf8' }).trim();
}

/** Contestants that run all the time: this checkout, and the other one or the program. */
export async function running(
  { workDir, checkout, keep }: Context,
  args: readonly string[],
  contest: {
    readonly startProgram: () => Promise<Program>;
    /** What a Holdover needs before the first round. */
    readonly fill?: (holdover: Program) => Promise<unknown>;
    readonly measure: (program: Program) => Promise<Figures>;
  },
): Promise<Contestants> {
  const { startProgram, fill, measure } = contest;
  const start = async (options: HoldoverOptions): Promise<Program> => {
    const holdover = await keep(startHoldover(options));
    await fill?.(holdover);
    return holdover;
  };
  const subject = await start({ workDir, args });
  const reference = checkout
    ? await start({ workDir, args, checkout: checkout.dir })
    : await keep(startProgram());
  return { subject: () => measure(subject), reference: () => measure(reference) };
}

/** Contestants that are started for each round. */
export function startedEachRound(
  { workDir, checkout }: Context,
  measure: (options: HoldoverOptions) => Promise<Figures>,
): Contestants {
  return {
    subject: () => measure({ workDir }),
    reference: () => measure({ workDir, checkout: checkout?.dir }),
  };
}
