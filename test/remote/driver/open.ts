import { type HostileV2, openHostileV2 } from '../../support/upstreams/hostile-v2.ts';
import { expect, onTestFinished, vi } from 'vitest';
import { type RemoteJobs, createRemoteJobs } from '../../../src/remote/remote-jobs.ts';
import type { RemoteOptions } from '../../../src/remote/remote-services.ts';
import type { RemoteLimits } from '../../../src/remote/limits.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import type { Caller } from '../../../src/protocol/job-api.ts';

/** A key that must never be seen anywhere it does not belong. */
export const CANARY = 'comfyui-canary-key';
export const CALLER: Caller = { user: 'anna', credential: CANARY };

/** Every wait cut down to what a test can sit through. */
export const FAST: Partial<RemoteLimits> = {
  connectTimeoutMs: 400,
  submitTimeoutMs: 300,
  readTimeoutMs: 300,
  readBudgetMs: 600,
  readRetryMs: 10,
  minRetryAfterMs: 60,
  maxRetryAfterMs: 300,
  defaultRetryAfterMs: 100,
  refusedPauseMs: 250,
  snapshotMs: 40,
  confirmAfterMs: 40,
  streamIdleTimeoutMs: 250,
  afterTerminalMs: 150,
  streamCheckMs: { opening: 5_000, first: 5_000, last: 5_000 },
  reconnectMs: { first: 20, last: 60 },
  failedReadMs: 30,
  readsPerSecond: 1_000,
  longStreamMs: 5_000,
  pollOnlyMs: 5_000,
  uncertainStreamMs: 5_000,
  pollMs: {
    watched: { first: 30, last: 30 },
    unwatched: { first: 60, last: 120 },
    queued: { first: 30, last: 60 },
  },
};

export type Opened = { readonly upstream: HostileV2; readonly remote: RemoteJobs };

/** A client in front of a server that does what it is told; both gone when the test is over. */
export async function openRemote(
  options: Partial<Omit<RemoteOptions, 'service'>> & {
    readonly baseUrl?: string;
    readonly mount?: string;
  } = {},
): Promise<Opened> {
  const { mount = '', limits, ...deps } = options;
  const upstream = await openHostileV2({ mount });
  const { baseUrl = upstream.url } = options;
  const remote = createRemoteJobs({
    service: { baseUrl },
    log: silentLogger(),
    ...deps,
    limits: { ...FAST, ...limits },
  });
  onTestFinished(async () => {
    await remote.close();
    await upstream.close();
    expect(upstream.failures).toEqual([]);
  });
  return { upstream, remote };
}

/** However busy the machine is. */
export const PATIENT = { timeout: 15_000, interval: 5 };

/** Resolves once the client has asked so many times. */
export async function asked(
  upstream: HostileV2,
  route: Parameters<HostileV2['requests']>[0],
  times: number,
): Promise<void> {
  await vi.waitUntil(() => upstream.requests(route).length >= times, PATIENT);
}
