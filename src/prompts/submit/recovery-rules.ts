import type { RetryPolicy } from './retry-policy.ts';

/** The answer that the client of a submission got before its outcome became unknown. */
export type ClientKnows = 'accepted' | 'unknown' | 'nothing';

/**
 * The result of a search that found no job. `none`: there will never be a job. `not listed`: the
 * service's complete list lacks it, but a request may still be processed. `not seen`: the service
 * has no list, or no complete one. `engine down`: the service still answers that it cannot reach
 * its engine. `no answer`: the service could not be asked.
 */
export type JobNotFound = 'none' | 'not listed' | 'not seen' | 'engine down' | 'no answer';

/**
 * `send`: under the same key. `send with new key`: under another one. The other actions end the
 * prompt.
 */
export type RecoveryAction = 'send' | 'send with new key' | 'remove' | 'not taken' | 'not known';

type WaitTime = 'now' | 'soon' | 'in flight' | 'window' | 'never';

/** How long a result must stay the same before it is acted on. */
const WAIT_MS = {
  now: () => 0,
  soon: (pace) => pace.absentMs,
  'in flight': (pace) => pace.inFlightMs,
  window: (pace) => pace.searchWindowMs,
  never: () => Infinity,
} as const satisfies Record<WaitTime, (pace: RetryPolicy) => number>;

type Rule = readonly [WaitTime, RecoveryAction];
type Rules = Record<ClientKnows, Record<JobNotFound, Rule>>;

/**
 * For a client that got an error: the plan is not sent again, and a job that the service lacks is
 * given up.
 */
const RULES_AFTER_ERROR_ANSWER = {
  none: ['now', 'not taken'],
  'not listed': ['soon', 'not taken'],
  'not seen': ['window', 'not known'],
  'engine down': ['soon', 'not known'],
  'no answer': ['window', 'not known'],
} as const satisfies Rules['unknown'];

const SENT_UNTIL_THERE_IS_A_JOB = {
  none: ['now', 'send'],
  'not listed': ['now', 'send'],
  'not seen': ['now', 'send'],
  'engine down': ['now', 'send'],
  'no answer': ['now', 'send'],
} as const satisfies Rules['accepted'];

/**
 * While the key may be free: it is sent again, also for a client that got no answer. That client
 * may repeat its prompt under the same id, and then gets this prompt.
 */
const RULES_WHILE_SENDING = {
  accepted: SENT_UNTIL_THERE_IS_A_JOB,
  unknown: RULES_AFTER_ERROR_ANSWER,
  nothing: SENT_UNTIL_THERE_IS_A_JOB,
} as const satisfies Rules;

/**
 * When the key must not be sent again. An accepted prompt gets a new key when the old one made no
 * job. If its client got no answer, the prompt is removed.
 */
const RULES_WHILE_SEARCHING = {
  accepted: {
    none: ['now', 'send with new key'],
    'not listed': ['in flight', 'send with new key'],
    'not seen': ['window', 'not known'],
    'engine down': ['never', 'send'],
    'no answer': ['window', 'not known'],
  },
  unknown: RULES_AFTER_ERROR_ANSWER,
  nothing: {
    none: ['now', 'remove'],
    'not listed': ['soon', 'not taken'],
    'not seen': ['window', 'not known'],
    'engine down': ['window', 'not known'],
    'no answer': ['window', 'not known'],
  },
} as const satisfies Rules;

/** Returns the next action; `wait`: search again later. */
export function nextRecoveryAction(
  pace: RetryPolicy,
  facts: {
    readonly clientKnows: ClientKnows;
    readonly lastResult: JobNotFound;
    readonly mayResend: boolean;
    /** How long the searches have had this result. */
    readonly unchangedForMs: number;
    /** For how long only searching has been possible. */
    readonly searchedForMs: number;
  },
): RecoveryAction | 'wait' {
  const rules: Rules = facts.mayResend ? RULES_WHILE_SENDING : RULES_WHILE_SEARCHING;
  const [waitTime, action] = rules[facts.clientKnows][facts.lastResult];
  const elapsedMs = waitTime === 'window' ? facts.searchedForMs : facts.unchangedForMs;
  return elapsedMs >= WAIT_MS[waitTime](pace) ? action : 'wait';
}
