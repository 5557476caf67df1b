import {
  type ComfyApiProxy,
  installComfyApiProxy,
  startComfyApiProxy,
} from '../support/upstreams/comfy-api-proxy.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

/** Event streams open at a time; jobs without one are asked about now and then. */
const STREAMS = 6;

/** A server for the crowd, and what runs its jobs. */
export type Topology = {
  readonly name: string;
  /** True when every step of a job is reported; comfy-api-proxy reports only some steps. */
  readonly tellsAll: boolean;
  readonly isServed: boolean;
  readonly mostLiveJobs?: number;
  /** Under a fixed key only callers without a key of their own may use v2. */
  readonly isV2ByKey?: boolean;
  open(): Promise<{ readonly holdover: Holdover; readonly close: () => Promise<void> }>;
};

const installed = await installComfyApiProxy();
const notRun = installed.ok ? '' : ` (NOT RUN: ${installed.why})`;
if (notRun) console.warn(`comfy-api-proxy could not be installed, its tests do not run${notRun}`);

export const TOPOLOGIES: readonly Topology[] = [
  {
    name: 'on the embedded engine, users by their keys',
    tellsAll: true,
    isServed: true,
    open: async () => alone(await startHoldover({ upstream: 'embedded' })),
  },
  {
    name: 'in front of a second Holdover under a fixed key',
    tellsAll: true,
    isServed: true,
    mostLiveJobs: STREAMS,
    isV2ByKey: false,
    open: inFrontOfHoldover,
  },
  {
    name: `in front of comfy-api-proxy${notRun}`,
    tellsAll: false,
    isServed: installed.ok,
    open: inFrontOfComfyApiProxy,
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

async function inFrontOfComfyApiProxy(): ReturnType<Topology['open']> {
  const packages = installed.ok ? installed.packages : '';
  const engine = await startHoldover({ upstream: 'embedded' });
  const proxy = await startComfyApiProxy({ packages, engineUrl: engine.url });
  const source = ['--object-info', `${engine.url}/object_info`];
  const holdover = await startHoldover({
    upstream: 'embedded',
    args: ['--upstream', proxy.url, ...source],
  });
  return { holdover, close: () => closeAll(holdover, proxy, engine) };
}

async function closeAll(...all: readonly (Holdover | ComfyApiProxy)[]): Promise<void> {
  for (const one of all) await one.dispose();
}
