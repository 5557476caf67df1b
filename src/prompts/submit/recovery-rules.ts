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

/**
 * Rules for a submission with an unknown outcome. If its client was told that it is accepted, it is
 * sent until it has a job. If the client got an error, it is given up. If the client got no answer,
 * it may still send its prompt again under the same id and gets this one: it is sent, but never under
 * a second key. While its key may be free (`yes`), that key is sent again; a key that was used and made
 * no job is replaced.
 */
const RULES = {
  yes: {
    accepted: {
      none: ['now', 'send'],
      'not listed': ['now', 'send'],
      'not seen': ['now', 'send'],
      'engine down': ['now', 'send'],
      blind: ['now', 'send'],
    },
    unknown: RULES_AFTER_ERROR_ANSWER,
    nothing: {
      none: ['now', 'send'],
      'not listed': ['now', 'send'],
      'not seen': ['now', 'send'],
      'engine down': ['now', 'send'],
      blind: ['now', 'send'],
    },
  },
  no: {
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
  },
} as const satisfies Record<'yes' | 'no', Rules>;

/** Returns the next action; `wait`: search again later. */
export function nextRecoveryAction(
  pace: RetryPolicy,
  facts: {
    readonly clientKnows: ClientKnows;
    readonly lastResult: JobNotFound;
    readonly isKeyFree: 'yes' | 'no';
    /** How long searches have had this result. */
    readonly unchangedForMs: number;
    /** How long only searching was possible. */
    readonly searchedForMs: number;
  },
): RecoveryAction | 'wait' {
  const [waitTime, action]: Rule = RULES[facts.isKeyFree][facts.clientKnows][facts.lastResult];
  const elapsedMs = waitTime === 'window' ? facts.searchedForMs : facts.unchangedForMs;
  return elapsedMs >= WAIT_MS[waitTime](pace) ? action : 'wait';
}
