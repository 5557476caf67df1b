import type { Config } from '../config/config.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { monotonicClock, systemClock } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { LivePrompts, OnPending } from '../prompts/live-prompts.ts';
import type { SubmissionPolicy } from '../prompts/ports.ts';
import { pendingRow } from '../prompts/pending-reason.ts';
import type { PromptEventLog } from '../prompts/prompt-event-log.ts';
import { Prompts } from '../prompts/prompts.ts';
import { DEFAULT_PACE } from '../prompts/submission-pace.ts';
import type { SharedCounter } from '../prompts/submission.ts';
import type { Hub } from '../sockets/hub.ts';
import type { Auth } from './auth.ts';
import type { Observers } from './observers.ts';
import type { OpenedUpstream, UpstreamServices } from './upstream.ts';

/** The live prompts, and what numbers them and brings their events to clients. */
export type PromptServices = {
  readonly live: LivePrompts;
  readonly eventLog: PromptEventLog;
  readonly counter: SharedCounter;
  readonly sockets: Hub;
  readonly life: Prompts;
};

type PromptParts = {
  readonly config: Config;
  readonly state: Omit<PromptServices, 'life'>;
  readonly observers: Observers;
  readonly auth: Auth;
  readonly ledger: Ledger;
  readonly upstream: UpstreamServices;
};

export function openPrompts(parts: PromptParts): PromptServices {
  const { config, state, auth } = parts;
  const { live, eventLog, counter, sockets } = state;
  const { runner, jobs, definitions } = parts.upstream;
  const { metrics, tracing, log } = parts.observers;
  const { prompts, files } = parts.ledger;
  const life = new Prompts({
    jobs: {
      api: jobs,
      objectInfo: definitions.info,
      reupload: runner.reupload,
      keyring: auth.keyring,
      needsCredential: runner.needsCredential,
    },
    records: { prompts, files, eventLog, counter },
    frames: {
      livePrompts: live,
      hub: sockets,
      showsAssetIds: config.assets,
      onEnded: (outcome) => metrics.onPromptEnded(outcome),
      spans: tracing?.prompts,
      log,
    },
    policy: submissionPolicyOf(config, runner),
  });
  return { ...state, life };
}

function submissionPolicyOf(
  config: Config,
  { mayRerunJobs = false }: OpenedUpstream,
): SubmissionPolicy {
  const { upstream } = config;
  const isService = upstream.kind === 'remote';
  const pace = upstream.kind === 'remote' ? (upstream.limits['outbox'] ?? {}) : {};
  return {
    traits: { isService, mayRerunJobs },
    durability: isService ? 'fsync' : 'soon',
    history: config.history,
    outboxLimit: config.outboxLimit,
    pace: { ...DEFAULT_PACE, ...pace },
    clock: systemClock,
    deadlineClock: monotonicClock,
  };
}

/**
 * Returns a function that logs a line each time a prompt begins to wait for another reason; `undefined` when the log
 * level does not need it.
 */
export function logPending(log: Logger): OnPending | undefined {
  if (!log.isLevelEnabled('debug')) return undefined;
  return ({ caller, promptId }, reason) => {
    const facts = { event: 'prompt.pending', user: caller.user, promptId, reason };
    log.debug(facts, pendingRow(reason).text);
  };
}
