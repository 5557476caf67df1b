import { type Clock, monotonicClock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { type Accounts, type Credential, createAccounts } from '../remote-calls/accounts.ts';
import { type CredentialCheck, createCredentialCheck } from '../remote-calls/credential-check.ts';
import { type RemoteAssets, createAssets } from '../remote-files/assets.ts';
import { type Calls, createCalls } from '../remote-calls/calls.ts';
import {
  type ForeignLinks,
  type RedirectHost,
  createForeignLinks,
} from '../remote-files/foreign-links.ts';
import { type UpstreamCapabilities, unknownCapabilities } from './capabilities.ts';
import { DEFAULT_REMOTE_LIMITS, type RemoteLimits } from './limits.ts';
import { type UpstreamLinks, createLinks } from '../remote-calls/upstream-links.ts';
import { type UploadPaths, createUploadPaths } from '../remote-files/upload-paths.ts';
import { type Connections, createConnections } from '../remote-calls/connections.ts';
import { type Recovery, createRecovery } from './recovery.ts';
import { type OutputIds, createOutputIds } from '../remote-files/output-ids.ts';
import { createStreamSlots } from '../remote-events/stream-slots.ts';
import { createCheckRate } from '../remote-events/silence-watch.ts';
import { type Snapshots, createSnapshots } from '../remote-events/snapshots.ts';
import { type SharedStreams, createSharedStreams } from '../remote-events/shared-streams.ts';

export type RemoteOptions = {
  /** Base URL of the service; `/api/v2` is appended unless it is there. */
  readonly baseUrl: string;
  readonly credential: Credential;
  /** Hides uploads of one user from the others, where the upstream does not. */
  readonly uploadPathSecret?: Buffer;
  readonly log: Logger;
  readonly limits?: Partial<RemoteLimits>;
  readonly assetMode?: 'auto' | 'object' | 'string';
  /** How labels are written; `auto` finds out. */
  readonly labels?: 'auto' | 'map' | 'string' | 'none';
  /** Private hosts its redirects may lead to, beside the service itself. */
  readonly redirectHosts?: readonly RedirectHost[];
  /**
   * True while a client watches the job: watched jobs get streams first and are polled more often.
   */
  readonly isWatched?: (user: string, jobId: string) => boolean;
  readonly clock?: Clock;
};

/** The contract allows more in places; no known server refuses six. */
const MAX_STREAMS = 6;

/** The parts of the client of one upstream. */
export type RemoteServices = {
  readonly options: RemoteOptions;
  readonly limits: RemoteLimits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly links: UpstreamLinks;
  readonly connections: Connections;
  readonly foreignLinks: ForeignLinks;
  readonly accounts: Accounts;
  readonly calls: Calls;
  readonly credentialCheck: CredentialCheck;
  readonly capabilities: UpstreamCapabilities;
  readonly snapshots: Snapshots;
  readonly outputIds: OutputIds;
  readonly recovery: Recovery;
  readonly assets: RemoteAssets;
  readonly uploadPaths: UploadPaths;
  readonly streamSlots: ReturnType<typeof createStreamSlots>;
  readonly sharedStreams: SharedStreams;
};

export function createRemoteServices(options: RemoteOptions): RemoteServices {
  const { clock = monotonicClock, log, isWatched = () => true } = options;
  const limits = { ...DEFAULT_REMOTE_LIMITS, ...options.limits };
  const links = createLinks(options.baseUrl);
  const connections = createConnections(links.origin, limits);
  const capabilities = unknownCapabilities();
  if (options.assetMode === 'object' || options.assetMode === 'string')
    capabilities.assetMode = options.assetMode;
  if (options.labels && options.labels !== 'auto') capabilities.labels = options.labels;
  const calls = createCalls({ connections, limits, clock, log, capabilities });
  const snapshots = createSnapshots({ calls, links, limits, clock });
  const streamSlots = createStreamSlots({ max: Math.min(limits.maxStreams, MAX_STREAMS), clock });
  const checkRate = createCheckRate({ ...limits.streamChecks, clock });
  const outputIds = createOutputIds({ snapshots });
  const common = {
    calls,
    links,
    snapshots,
    capabilities,
    limits,
    clock,
    log,
    streamSlots,
    checkRate,
    outputIds,
  };
  return {
    ...common,
    options,
    connections,
    foreignLinks: createForeignLinks(links.origin, limits, { hosts: options.redirectHosts ?? [] }),
    accounts: createAccounts(options.credential, {
      clock,
      maxConcurrentSubmissions: limits.submitsAtOnce,
    }),
    credentialCheck: createCredentialCheck({ ...common, timeoutMs: limits.discoverTimeoutMs }),
    recovery: createRecovery(common),
    assets: createAssets(common),
    uploadPaths: createUploadPaths(options.uploadPathSecret),
    sharedStreams: createSharedStreams({ ...common, isWatched }),
  };
}
