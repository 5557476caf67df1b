import type { RetryPolicy } from './retry-policy.ts';

/** The answer that the client of a submission got before its outcome became unknown. */
export type ClientKnows = 'accepted' | 'unknown' | 'nothing';

/**
 * The result of a search that found no job. `none`: there will never be one; `not listed`: the
 * service's complete list lacks it, but a request may still be processed; `not seen`: the service
 * has no list, or not a complete one; `engine down`: the service answers that it cannot reach its
 * engine, as it did before; `blind`: the service could not be asked.
 */
export type JobNotFound = 'none' | 'not listed' | 'not seen' | 'engine down' | 'blind';

/** `send`: under the same key; `send with new key`: under a new one. The others end the prompt. */
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

/** The client got an error: nothing is sent again, and a job the service lacks is given up. */
const RULES_AFTER_ERROR_ANSWER = {
  none: ['now', 'not taken'],
  'not listed': ['soon', 'not taken'],
  'not seen': ['window', 'not known'],
  'engine down': ['soon', 'not known'],
  blind: ['window', 'not known'],
} as const satisfies Rules['unknown'];

const SENT_UNTIL_THERE_IS_A_JOB = {
  none: ['now', 'send'],
  'not listed': ['now', 'send'],
  'not seen': ['now', 'send'],
  'engine down': ['now', 'send'],
  blind: ['now', 'send'],
} as const satisfies Rules['accepted'];

/**
 * The key may be free, and is sent again. So it is for a client that got no answer: it may repeat its
 * prompt under the same id, and gets this one.
 */
const RULES_WHILE_SENDING = {
  accepted: SENT_UNTIL_THERE_IS_A_JOB,
  unknown: RULES_AFTER_ERROR_ANSWER,
  nothing: SENT_UNTIL_THERE_IS_A_JOB,
} as const satisfies Rules;

/**
 * The key must not be sent again. An accepted prompt gets a new key when the old one made no job; if
 * its client got no answer, the prompt is removed.
 */
const RULES_WHILE_SEARCHING = {
  accepted: {
    none: ['now', 'send with new key'],
    'not listed': ['in flight', 'send with new key'],
    'not seen': ['window', 'not known'],
    'engine down': ['never', 'send'],
    blind: ['window', 'not known'],
  },
  unknown: RULES_AFTER_ERROR_ANSWER,
  nothing: {
    none: ['now', 'remove'],
    'not listed': ['soon', 'not taken'],
    'not seen': ['window', 'not known'],
    'engine down': ['window', 'not known'],
    blind: ['window', 'not known'],
  },
} as const satisfies Rules;

/** Returns the next action; `wait`: search again later. */
export function nextRecoveryAction(
  pace: RetryPolicy,
  facts: {
    readonly clientKnows: ClientKnows;
    readonly lastResult: JobNotFound;
    readonly mayResend: boolean;
    /** How long searches have had this result. */
    readonly unchangedForMs: number;
    /** How long only searching was possible. */
    readonly searchedForMs: number;
  },
): RecoveryAction | 'wait' {
  const rules: Rules = facts.mayResend ? RULES_WHILE_SENDING : RULES_WHILE_SEARCHING;
  const [waitTime, action] = rules[facts.clientKnows][facts.lastResult];
  const elapsedMs = waitTime === 'window' ? facts.searchedForMs : facts.unchangedForMs;
  return elapsedMs >= WAIT_MS[waitTime](pace) ? action : 'wait';
}
