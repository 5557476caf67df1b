import type { Bench } from '../bench.ts';
import { calls } from './calls.ts';
import { referenceAt } from './checkouts.ts';
import { dependencies } from './dependencies.ts';
import { files } from './files.ts';
import { first } from './first.ts';
import { memory } from './memory.ts';
import { rates } from './rates.ts';
import { relay } from './relay.ts';
import { start } from './start.ts';

/** The benchmarks whose reference is a built checkout of another commit. */
export function benchesAgainst(dir: string): readonly Bench[] {
  const reference = referenceAt(dir);
  return [first, relay, calls, rates, files, memory, dependencies, start].map((bench) =>
    bench(reference),
  );
}
