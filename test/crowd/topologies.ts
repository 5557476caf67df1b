import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

/** Event streams open at a time; jobs without one are asked about now and then. */
const STREAMS = 6;

/** A server for the crowd, and what runs its jobs. */
export type Topology = {
  readonly name: string;
  readonly mostLiveJobs?: number;
  /** Under a fixed key only callers without a key of their own may use v2. */
  readonly isV2ByKey?: boolean;
  open(): Promise<{ readonly holdover: Holdover; readonly close: () => Promise<void> }>;
};

export const TOPOLOGIES: readonly Topology[] = [
  {
    name: 'on the embedded engine, users by their keys',
    open: async () => alone(await startHoldover({ upstream: 'embedded' })),
  },
  {
    name: 'in front of a second Holdover under a fixed key',
    mostLiveJobs: STREAMS,
    isV2ByKey: false,
    open: inFrontOfHoldover,
  },
];

function alone(holdover: Holdover): {
  readonly holdover: Holdover;
  readonly close: () => Promise<void>;
} {
  return { holdover, close: () => holdover.dispose() };
}

async function inFrontOfHoldover(): ReturnType<Topology['open']> {
  const engine = await startHoldover({ upstream: 'embedded', args: ['--local-token', 'fixed'] });
  const holdover = await startHoldover({
    upstream: 'embedded',
    args: ['--upstream', engine.url],
    env: { HOLDOVER_UPSTREAM_KEY: 'fixed' },
  });
  return { holdover, close: () => closeAll(holdover, engine) };
}

async function closeAll(...all: readonly Holdover[]): Promise<void> {
  for (const one of all) await one.dispose();
}
