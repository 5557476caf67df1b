import { parseArgs } from 'node:util';
import { UPSTREAMS } from './topology.ts';

export type SoakFlags = {
  readonly minutes: number;
  readonly seed: number;
  readonly upstreams: readonly (typeof UPSTREAMS)[number][];
};

/** Reads `--minutes M --seed S --upstream NAME`; the seed may be left out, and is printed. */
export function readFlags(args: readonly string[]): SoakFlags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
      upstream: { type: 'string' },
    },
  });
  const { upstream } = values;
  const upstreams = UPSTREAMS.filter((one) => upstream === undefined || one === upstream);
  if (upstreams.length === 0) throw new Error(`--upstream is one of ${UPSTREAMS.join(', ')}`);
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0)) throw new Error('--minutes must be a number above 0');
  if (!Number.isInteger(seed) || seed < 0) throw new Error('--seed must be a whole number');
  return { minutes, seed, upstreams };
}
