import { isoTime } from '../lib/clock.ts';
import type { Config } from '../config/config.ts';
import type { ServerAnswer } from './api-types.ts';
import type { Limit } from './server-limits.ts';

export type Warning = ServerAnswer['warnings'][number];

/** The discovered capabilities of the service that runs the jobs. */
export type DiscoveredUpstream = {
  readonly listing: 'unknown' | 'yes' | 'no';
  readonly ignoresCancel: boolean;
  readonly changesIds: boolean;
};

export type WarningSources = {
  readonly config: Config;
  readonly nowMs: number;
  readonly upstream: string;
  readonly isHealthy: boolean;
  readonly limits: readonly Limit[];
  readonly outbox: number;
  readonly workers: number | null;
  readonly discovered: DiscoveredUpstream | undefined;
};

/** Returns the warnings that require action by an operator, the most urgent first. */
export function warningsOf(sources: WarningSources): readonly Warning[] {
  return [
    ...healthWarnings(sources),
    ...sources.limits.flatMap(limitWarning),
    ...outboxWarnings(sources),
    ...upstreamWarnings(sources.discovered),
    ...brownoutWarnings(sources),
  ];
}

function healthWarnings({
  isHealthy,
  upstream,
  workers,
  config,
}: WarningSources): readonly Warning[] {
  if (!isHealthy) {
    const text = `The upstream (${upstream}) does not answer as it should: accepted prompts wait.`;
    const action = 'Start it again, or check its address and key.';
    return [{ code: 'upstream_unhealthy', text, action }];
  }
  if (workers !== 0 || config.engine.concurrency > 0) return [];
  const text = 'No process runs jobs: accepted prompts wait.';
  return [
    { code: 'no_worker', text, action: 'Start a worker, or give --concurrency more than 0.' },
  ];
}

/** A limit that is used to this share leads to a warning. */
const WARNING_SHARE = 0.85;

function limitWarning({ name, flag, used, limit }: Limit): readonly Warning[] {
  if (used < limit * WARNING_SHARE || limit === 0) return [];
  const text = `${name}: ${Math.round((used / limit) * 100)} % of the limit are used.`;
  const action = flag === '' ? 'Make room.' : `Raise ${flag}, or make room.`;
  return [{ code: 'limit_near', text, action }];
}

function outboxWarnings({ outbox }: WarningSources): readonly Warning[] {
  if (outbox === 0) return [];
  const text = `${outbox} accepted prompts wait until the upstream has room.`;
  const action =
    'They are sent by themselves; look at the health of the upstream when the number grows.';
  return [{ code: 'outbox', text, action }];
}

function upstreamWarnings(discovered: DiscoveredUpstream | undefined): readonly Warning[] {
  if (discovered === undefined) return [];
  const warnings: Warning[] = [];
  if (discovered.listing === 'no') {
    warnings.push({
      code: 'no_job_list',
      text: 'The upstream has no list of jobs: a prompt whose submission was not answered cannot be found again.',
      action: 'Use a newer version of the service, if there is one.',
    });
  }
  if (discovered.changesIds) {
    warnings.push({
      code: 'no_state_dir',
      text: 'The upstream was restarted and gave its outputs other ids: it forgets uploads and labels too.',
      action: 'Start comfy-api-proxy with --state-dir.',
    });
  }
  if (discovered.ignoresCancel) {
    warnings.push({
      code: 'cancel_ignored',
      text: 'The upstream answers a cancel with success and cancels nothing.',
      action: 'Use ComfyUI 0.26 or newer.',
    });
  }
  return warnings;
}

function brownoutWarnings({ config, nowMs }: WarningSources): readonly Warning[] {
  return config.deprecationSettings.brownouts
    .filter(({ toMs }) => toMs === undefined || toMs > nowMs)
    .map(({ fromMs, toMs }) => {
      const isOn = fromMs === undefined || fromMs <= nowMs;
      const from = fromMs === undefined ? '' : ` from ${isoTime(fromMs)}`;
      const to = toMs === undefined ? '' : ` until ${isoTime(toMs)}`;
      return {
        code: 'brownout',
        text: isOn ? `A brownout of v1 is on${to}.` : `A brownout of v1 is planned${from}${to}.`,
        action: 'Clients that it affects are shown under Leaving v1.',
      };
    });
}
