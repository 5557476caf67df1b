import type { Context } from './bench.ts';
import { type PromptCost, measureLoad } from './replica-load.ts';

/** The cost of a part of a load: processor time, and bytes through Redis. */
export type Cost = Pick<
  PromptCost,
  'replicaUs' | 'redisUs' | 'commands' | 'sentBytes' | 'receivedBytes'
>;

/** The costs that the simulation is made of. */
export type RecordedCosts = {
  readonly prompt: Cost;
  readonly step: Cost;
  /** A step with a preview of 20 KB, whose user has the socket at another replica. */
  readonly stepElsewhere: Cost;
};

const FEW_STEPS = 10;
const MANY_STEPS = 40;

/** Two lengths of a prompt tell what a prompt costs and what each of its steps does. */
export async function measureCosts(context: Context): Promise<RecordedCosts> {
  const alone = { replicas: 1, postsAt: 0, previews: 'without previews' } as const;
  const apart = { replicas: 2, postsAt: 1, previews: 'with previews' } as const;
  const short = await measureLoad(context, { ...alone, steps: FEW_STEPS });
  const long = await measureLoad(context, { ...alone, steps: MANY_STEPS });
  const shortApart = await measureLoad(context, { ...apart, steps: FEW_STEPS });
  const longApart = await measureLoad(context, { ...apart, steps: MANY_STEPS });
  const step = perStep(short, long);
  return {
    prompt: combined(short, step, (whole, each) => whole - FEW_STEPS * each),
    step,
    stepElsewhere: perStep(shortApart, longApart),
  };
}

function perStep(short: Cost, long: Cost): Cost {
  return combined(long, short, (more, less) => (more - less) / (MANY_STEPS - FEW_STEPS));
}

function combined(one: Cost, other: Cost, act: (one: number, other: number) => number): Cost {
  const of = (figure: keyof Cost): number => Math.max(0, act(one[figure], other[figure]));
  return {
    replicaUs: of('replicaUs'),
    redisUs: of('redisUs'),
    commands: of('commands'),
    sentBytes: of('sentBytes'),
    receivedBytes: of('receivedBytes'),
  };
}
