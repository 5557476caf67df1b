import type { Pace } from './pace.ts';

/** The answer the client of a submission got before its outcome became unknown. */
export type Told = 'accepted' | 'unknown' | 'unheard';

/**
 * The result of a search that found no job. `none`: there never will be one; `not listed`:
 * the service's whole list lacks it, though a request may be on its way; `not seen`: the service has
 * no list, or not all of it; `engine down`: the service says that it cannot reach its engine,
 * as it has answered to every request; `blind`: the service could not be asked.
 */
export type Unseen = 'none' | 'not listed' | 'not seen' | 'engine down' | 'blind';

/** `send`: under the key it has; `send anew`: under a new one; the rest end the prompt. */
export type Act = 'send' | 'send anew' | 'forget' | 'not taken' | 'not known';

type Patience = 'now' | 'soon' | 'in flight' | 'window' | 'never';

/** How long a look must come to the same before something is done about it. */
const PATIENCE_MS = {
  now: () => 0,
  soon: (pace) => pace.absentMs,
  'in flight': (pace) => pace.inFlightMs,
  window: (pace) => pace.searchWindowMs,
  never: () => Infinity,
} as const satisfies Record<Patience, (pace: Pace) => number>;

type Rule = readonly [Patience, Act];
type Rows = Record<Told, Record<Unseen, Rule>>;

/** An error was the answer: nothing is sent by itself, and what the service lacks is given up. */
const TOLD_UNKNOWN = {
  none: ['now', 'not taken'],
  'not listed': ['soon', 'not taken'],
  'not seen': ['window', 'not known'],
  'engine down': ['soon', 'not known'],
  blind: ['window', 'not known'],
} as const satisfies Rows['unknown'];

/**
 * Decides on a submission of unknown outcome: one its client was told is accepted is sent until
 * it has a job, one its client was told an error about is given up, one its client never heard of
 * is forgotten. While its key may be free (`yes`) that key is sent again; a key that was used and left
 * no job is replaced.
 */
const FATES = {
  yes: {
    accepted: {
      none: ['now', 'send'],
      'not listed': ['now', 'send'],
      'not seen': ['now', 'send'],
      'engine down': ['now', 'send'],
      blind: ['now', 'send'],
    },
    unknown: TOLD_UNKNOWN,
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
    unknown: TOLD_UNKNOWN,
    unheard: {
      none: ['now', 'forget'],
      'not listed': ['soon', 'not taken'],
      'not seen': ['window', 'not known'],
      'engine down': ['window', 'not known'],
      blind: ['window', 'not known'],
    },
  },
} as const satisfies Record<'yes' | 'no', Rows>;

/** The next step; `wait`: look again later. */
export function fateOf(
  pace: Pace,
  known: {
    readonly told: Told;
    readonly seen: Unseen;
    readonly isKeyFree: 'yes' | 'no';
    /** How long looks have come to this. */
    readonly sameForMs: number;
    /** How long nothing but looking was possible. */
    readonly searchedForMs: number;
  },
): Act | 'wait' {
  const [patience, act]: Rule = FATES[known.isKeyFree][known.told][known.seen];
  const passedMs = patience === 'window' ? known.searchedForMs : known.sameForMs;
  return passedMs >= PATIENCE_MS[patience](pace) ? act : 'wait';
}
