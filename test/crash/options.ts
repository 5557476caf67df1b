import { parseArgs } from 'node:util';
import { TOPOLOGIES, type Topology } from './processes.ts';

export type CrashFlags = {
  readonly kills: number;
  readonly killsOfEach: number;
  readonly parts: readonly string[] | undefined;
  readonly seed: number;
  readonly topologies: readonly Topology[];
};

/** Reads `--kills N --each N --parts A,B --seed S --topology NAME`; the seed may be left out, and is printed. */
export function readFlags(args: readonly string[]): CrashFlags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kills: { type: 'string', default: '300' },
      each: { type: 'string', default: '0' },
      parts: { type: 'string' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
      topology: { type: 'string' },
    },
  });
  const { topology } = values;
  const topologies = TOPOLOGIES.filter((one) => topology === undefined || one === topology);
  if (topologies.length === 0) throw new Error(`--topology is one of ${TOPOLOGIES.join(', ')}`);
  return {
    kills: whole('kills', values.kills),
    killsOfEach: whole('each', values.each),
    parts: values.parts?.split(','),
    seed: whole('seed', values.seed),
    topologies,
  };
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new Error(`--${name} must be a whole number`);
}
