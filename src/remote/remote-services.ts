import { type Clock, monotonicClock } from '../lib/clock.ts';
import { createTurnQueue } from '../lib/rate-limiter.ts';
import type { Logger } from '../observability/log.ts';
import { type Account, Accounts } from './calls/accounts.ts';
import { createCredentialCheck } from './calls/credential-check.ts';
import { RemoteAssets } from './files/assets.ts';
import { type RemoteClient, UpstreamCalls } from './calls/calls.ts';
import type { RedirectHost } from '../config/upstream.ts';
import { ForeignLinks } from './files/foreign-links.ts';
import { UNKNOWN_CAPABILITIES, type UpstreamCapabilities } from './capabilities.ts';
import { DEFAULT_REMOTE_LIMITS, type RemoteLimits } from './limits.ts';
import { createLinks } from './calls/upstream-links.ts';
import { UploadPaths } from './files/upload-paths.ts';
import { Connections } from './calls/connections.ts';
import type { RequestHeaders } from './calls/exchange.ts';
import { RemoteJobSearch } from './job-search.ts';
import { type ReadOutput, createOutputReader } from './files/output-ids.ts';
import { StreamSlots } from './events/stream-slots.ts';
import { Snapshots } from './events/snapshots.ts';
import { SharedStreams } from './events/shared-streams.ts';

export type RemoteOptions = {
  readonly service: {
    /** The base URL. `/api/v2` is added unless it is there. */
    readonly baseUrl: string;
    /** The one key for all callers. Absent: each caller's own key is sent. */
    readonly key?: string | undefined;
    /** The private hosts to which the service may redirect, beside itself. */
    readonly redirectHosts?: readonly RedirectHost[];
  };
  /** Hides uploads of one user from the others, where the upstream does not. */
  readonly uploadPathSecret?: Buffer;
  readonly log: Logger;
  readonly limits?: Partial<RemoteLimits>;
  /** How submissions are written, as far as that need not be found out. */
  readonly format?: Partial<Pick<UpstreamCapabilities, 'assetMode' | 'labels'>>;
  /**
   * True while a client watches the job. Watched jobs get streams first and are polled more often.
   */
  readonly isWatched?: (user: string, jobId: string) => boolean;
  /** Returns the headers that tell the service the trace of the current call. */
  readonly traceHeaders?: (() => RequestHeaders) | undefined;
  readonly clock?: Clock;
};

/** The parts of the client of one upstream. */
export type RemoteServices = {
  readonly client: RemoteClient;
  readonly connections: Connections;
  readonly accounts: Accounts;
  /** True when the upstream accepts the key of the account, or its absence. */
  readonly isAccepted: (account: Account) => Promise<boolean>;
  readonly jobSearch: RemoteJobSearch;
  readonly files: {
    readonly readOutput: ReadOutput;
    readonly foreignLinks: ForeignLinks;
    readonly assets: RemoteAssets;
    readonly uploadPaths: UploadPaths;
  };
  readonly events: {
    readonly snapshots: Snapshots;
    readonly streamSlots: StreamSlots;
    readonly sharedStreams: SharedStreams;
  };
};

export function createRemoteServices(options: RemoteOptions): RemoteServices {
  const { service, clock = monotonicClock, log, isWatched = () => true } = options;
  const limits: RemoteLimits = { ...DEFAULT_REMOTE_LIMITS, ...options.limits };
  const links = createLinks(service.baseUrl);
  const connections = new Connections(links.origin, limits, options.traceHeaders);
  const capabilities = { ...UNKNOWN_CAPABILITIES, ...options.format };
  const calls = new UpstreamCalls(connections, { limits, clock, log, capabilities });
  const client: RemoteClient = { calls, links, capabilities, limits, clock, log };
  const snapshots = new Snapshots(client);
  const streamSlots = new StreamSlots(limits.maxStreams, clock);
  const readTurns = createTurnQueue({ perSecond: limits.readsPerSecond, clock });
  const readOutput = createOutputReader(snapshots, capabilities);
  return {
    client,
    connections,
    accounts: new Accounts({
      clock,
      maxConcurrentSubmissions: limits.submitsAtOnce,
      key: service.key,
    }),
    isAccepted: createCredentialCheck(client),
    jobSearch: new RemoteJobSearch(client, snapshots),
    files: {
      readOutput,
      foreignLinks: new ForeignLinks(links.origin, limits, service.redirectHosts),
      assets: new RemoteAssets(client, readOutput),
      uploadPaths: new UploadPaths(options.uploadPathSecret),
    },
    events: {
      snapshots,
      streamSlots,
      sharedStreams: new SharedStreams({
        ...client,
        snapshots,
        sharing: { streamSlots, readTurns, isWatched },
      }),
    },
  };
}
