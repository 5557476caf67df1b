import { parseArgs } from 'node:util';
import { UPSTREAMS } from './topology.ts';

export type SoakFlags = {
  readonly minutes: number;
  readonly upstreams: readonly (typeof UPSTREAMS)[number][];
};

/** Reads `--minutes M --upstream NAME`. */
export function readFlags(args: readonly string[]): SoakFlags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      upstream: { type: 'string' },
    },
  });
  const { upstream } = values;
  const upstreams = UPSTREAMS.filter((one) => upstream === undefined || one === upstream);
  if (upstreams.length === 0) throw new Error(`--upstream is one of ${UPSTREAMS.join(', ')}`);
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error('--minutes must be a number above 0');
  return { minutes, upstreams };
}
