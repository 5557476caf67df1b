import type { RetryPolicy } from './retry-policy.ts';

/** The answer the client of a submission got before its outcome became unknown. */
export type ClientKnows = 'accepted' | 'unknown' | 'unheard';

/**
 * The result of a search that found no job. `none`: there never will be one; `not listed`:
 * the service's whole list lacks it, though a request may be on its way; `not seen`: the service has
 * no list, or not all of it; `engine down`: the service says that it cannot reach its engine,
 * as it has answered to every request; `blind`: the service could not be asked.
 */
export type JobNotFound = 'none' | 'not listed' | 'not seen' | 'engine down' | 'blind';

/** `send`: under the key it has; `send anew`: under a new one; the rest end the prompt. */
export type RecoveryAction = 'send' | 'send anew' | 'forget' | 'not taken' | 'not known';

type WaitTime = 'now' | 'soon' | 'in flight' | 'window' | 'never';

/** How long a look must come to the same before something is done about it. */
const WAIT_MS = {
  now: () => 0,
  soon: (pace) => pace.absentMs,
  'in flight': (pace) => pace.inFlightMs,
  window: (pace) => pace.searchWindowMs,
  never: () => Infinity,
} as const satisfies Record<WaitTime, (pace: RetryPolicy) => number>;

type Rule = readonly [WaitTime, RecoveryAction];
type Rules = Record<ClientKnows, Record<JobNotFound, Rule>>;

/** An error was the answer: nothing is sent by itself, and what the service lacks is given up. */
const RULES_AFTER_ERROR_ANSWER = {
  none: ['now', 'not taken'],
  'not listed': ['soon', 'not taken'],
  'not seen': ['window', 'not known'],
  'engine down': ['soon', 'not known'],
  blind: ['window', 'not known'],
} as const satisfies Rules['unknown'];

/**
 * Decides on a submission of unknown outcome: one its client was told is accepted is sent until
 * it has a job, one its client was told an error about is given up, one its client never heard of
 * is forgotten. While its key may be free (`yes`) that key is sent again; a key that was used and left
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
    unheard: {
      none: ['now', 'forget'],
      'not listed': ['now', 'send'],
      'not seen': ['now', 'send'],
      'engine down': ['now', 'send'],
      blind: ['now', 'send'],
    },
  },
  no: {
    accepted: {
      none: ['now', 'send anew'],
      'not listed': ['in flight', 'send anew'],
      'not seen': ['window', 'not known'],
      'engine down': ['never', 'send'],
      blind: ['window', 'not known'],
    },
    unknown: RULES_AFTER_ERROR_ANSWER,
    unheard: {
      none: ['now', 'forget'],
      'not listed': ['soon', 'not taken'],
      'not seen': ['window', 'not known'],
      'engine down': ['window', 'not known'],
      blind: ['window', 'not known'],
    },
  },
} as const satisfies Record<'yes' | 'no', Rules>;

/** The next step; `wait`: look again later. */
export function nextRecoveryAction(
  pace: RetryPolicy,
  facts: {
    readonly clientKnows: ClientKnows;
    readonly lastResult: JobNotFound;
    readonly isKeyFree: 'yes' | 'no';
    /** How long looks have come to this. */
    readonly unchangedForMs: number;
    /** How long nothing but looking was possible. */
    readonly searchedForMs: number;
  },
): RecoveryAction | 'wait' {
  const [waitTime, action]: Rule = RULES[facts.isKeyFree][facts.clientKnows][facts.lastResult];
  const elapsedMs = waitTime === 'window' ? facts.searchedForMs : facts.unchangedForMs;
  return elapsedMs >= WAIT_MS[waitTime](pace) ? action : 'wait';
}
