import type { PromptState } from '../../ledger/columns.ts';

/** The states of a prompt until it has a job, and after its end while a job of it may exist. */
export type SubmissionState = Exclude<PromptState, 'live'>;

/** The outcome of an attempt to submit. */
export type AttemptInput =
  | 'accepted'
  /** The service made no job, for a reason that stays. */
  | 'refused'
  /**
   * The service made no job: the credential may be accepted later, its storage is full, or a proxy
   * answered.
   */
  | 'refused for now'
  /** The service made no job, as it has no capacity now. */
  | 'full'
  | 'not sent'
  /** There may be a job. */
  | 'unknown'
  /** An earlier attempt has used the key, so there may be a job. */
  | 'key used';

/** The result of a search for the job. */
export type SearchInput =
  | 'found'
  /** There will never be a job under this key. */
  | 'none'
  /** The complete list lacks it, and the service has answered every attempt. */
  | 'absent'
  /** The complete list lacks it; a request that got no answer may still make it. */
  | 'not listed'
  /** The part of the list that the service returned lacks it. */
  | 'not seen'
  | 'no list'
  /** The service answers that it cannot reach its engine, as it did to the last attempt. */
  | 'engine down'
  | 'unreachable'
  | 'no answer';

export type Input = 'due' | 'cancelled' | AttemptInput | SearchInput;

export type Action =
  /** Searches for the job if an attempt may have made one, else sends the plan. */
  | 'continue'
  | 'send'
  | 'send with new key'
  /** Continues later. */
  | 'wait'
  /** Puts the prompt into the outbox, and waits. */
  | 'queue'
  | 'link'
  /** Removes the prompt and answers with the refusal. */
  | 'refuse'
  /** Answers that the outcome is unknown, and continues. */
  | 'answer unknown'
  /** Ends the prompt with the refusal as its error. */
  | 'fail'
  /** Removes a prompt that no client knows. */
  | 'remove'
  | 'give up: not taken'
  | 'give up: not known'
  /** Ends the prompt as cancelled. */
  | 'cancel'
  /** Cancels a job that was found after the end of its prompt. */
  | 'cancel job'
  | 'stop';

/**
 * The conditions of rules, and their meanings for the documentation.
 * @internal
 */
export const CONDITIONS = {
  first: 'no attempt may have made a job',
  final: 'as `first`, or the refusal is about the content, and a search could see jobs',
  'outbox full': '`first`, and the outbox of the user is full',
  'secrets gone': 'the prompt came with keys of its own, which are lost with their process',
  'tries left': 'the plan was not sent for the first or the second time',
  'may repeat': '`may send`, and at most two attempts had an unknown outcome',
  'time left': 'less than 15 seconds have passed since the first attempt of unknown outcome',
  'may send': 'the service remembers keys, and the key may be sent: no answer said that it is used',
  'may send later': 'the key may be sent, and the service has not shown if it remembers keys',
  'keys left': 'fewer than three further keys of the prompt were used up',
  soon: 'the result of the search has been the same for 2 seconds',
  'in flight': 'the result of the search has been the same for a minute',
  'in flight, keys left': 'both',
  window: 'the job has been searched for during ten minutes',
} as const;

type Condition = keyof typeof CONDITIONS;

export type Conditions = Readonly<Record<Condition, boolean>>;

/**
 * The first condition that holds decides; the last member is the action when none does.
 * @internal
 */
export type Rules = readonly [...(readonly [Condition, Action])[], Action];

/** The rules of a state for each of its inputs. */
type Row<Inputs extends Input> = Readonly<Record<Inputs, Rules>>;

const GIVEN_UP_IN_TIME: Rules = [['window', 'give up: not known'], 'wait'];
const SENT_OR_GIVEN_UP: Rules = [['may send', 'send'], ['window', 'give up: not known'], 'wait'];
const ASKED_AGAIN: Rules = [['may repeat', 'send'], ['time left', 'wait'], 'answer unknown'];
const STOPPED_IN_TIME: Rules = [['window', 'stop'], 'wait'];

/** A client without an answer, or one that was accepted: the plan is sent until there is a job. */
const SENT_UNTIL_THERE_IS_A_JOB = {
  due: ['continue'],
  cancelled: ['cancel'],
  accepted: ['link'],
  unknown: ['wait'],
  'key used': ['wait'],
  found: ['link'],
  absent: [['soon', 'send with new key'], 'wait'],
  'not seen': SENT_OR_GIVEN_UP,
  'no list': SENT_OR_GIVEN_UP,
  unreachable: [['may send', 'wait'], ['may send later', 'wait'], ...GIVEN_UP_IN_TIME],
  'no answer': SENT_OR_GIVEN_UP,
} as const satisfies Partial<Row<Input>>;

/**
 * The next action for each state and input. It is printed in `docs/architecture.md`.
 * @internal
 */
export const SUBMISSION_TABLE = {
  submitting: {
    due: ['continue'],
    accepted: ['link'],
    refused: [['final', 'refuse'], ['time left', 'wait'], 'answer unknown'],
    'refused for now': [['first', 'refuse'], ['time left', 'wait'], 'answer unknown'],
    full: [['outbox full', 'refuse'], ['first', 'queue'], ['time left', 'wait'], 'answer unknown'],
    'not sent': [
      ['tries left', 'wait'],
      ['first', 'refuse'],
      ['time left', 'wait'],
      'answer unknown',
    ],
    unknown: [['time left', 'wait'], 'answer unknown'],
    'key used': [['time left', 'wait'], 'answer unknown'],
    found: ['link'],
    none: [['may repeat', 'send'], 'answer unknown'],
    absent: [['may repeat', 'send'], ['soon', 'refuse'], 'wait'],
    'not listed': ASKED_AGAIN,
    'not seen': ASKED_AGAIN,
    'no list': [['may repeat', 'send'], 'answer unknown'],
    'engine down': [['may repeat', 'send'], 'answer unknown'],
    unreachable: [['time left', 'wait'], 'answer unknown'],
    'no answer': ASKED_AGAIN,
  },
  unanswered: {
    ...SENT_UNTIL_THERE_IS_A_JOB,
    refused: [['final', 'remove'], 'wait'],
    'refused for now': ['wait'],
    full: ['wait'],
    'not sent': ['wait'],
    none: [['may send', 'send'], 'remove'],
    'not listed': [['may send', 'send'], ['soon', 'give up: not taken'], 'wait'],
    'engine down': SENT_OR_GIVEN_UP,
  },
  outbox: {
    due: [['secrets gone', 'fail'], 'continue'],
    cancelled: ['cancel'],
  },
  sent: {
    ...SENT_UNTIL_THERE_IS_A_JOB,
    refused: [['final', 'fail'], 'wait'],
    'refused for now': [['first', 'queue'], 'wait'],
    full: [['first', 'queue'], 'wait'],
    'not sent': [['first', 'queue'], 'wait'],
    none: [['may send', 'send'], ['keys left', 'send with new key'], 'give up: not taken'],
    'not listed': [
      ['may send', 'send'],
      ['in flight, keys left', 'send with new key'],
      ['in flight', 'give up: not taken'],
      'wait',
    ],
    'engine down': [['may send', 'send'], 'wait'],
  },
  unknown: {
    due: ['continue'],
    cancelled: ['cancel'],
    found: ['link'],
    none: ['give up: not taken'],
    absent: [['soon', 'give up: not taken'], 'wait'],
    'not listed': [['soon', 'give up: not taken'], 'wait'],
    'not seen': GIVEN_UP_IN_TIME,
    'no list': GIVEN_UP_IN_TIME,
    'engine down': [['soon', 'give up: not known'], 'wait'],
    unreachable: GIVEN_UP_IN_TIME,
    'no answer': GIVEN_UP_IN_TIME,
  },
  done: {
    due: ['continue'],
    found: ['cancel job'],
    none: ['stop'],
    absent: STOPPED_IN_TIME,
    'not listed': STOPPED_IN_TIME,
    'not seen': STOPPED_IN_TIME,
    'no list': STOPPED_IN_TIME,
    'engine down': STOPPED_IN_TIME,
    unreachable: STOPPED_IN_TIME,
    'no answer': STOPPED_IN_TIME,
  },
} as const satisfies {
  readonly submitting: Row<Exclude<Input, 'cancelled'>>;
  readonly unanswered: Row<Input>;
  readonly outbox: Row<'due' | 'cancelled'>;
  readonly sent: Row<Input>;
  readonly unknown: Row<Exclude<Input, AttemptInput>>;
  readonly done: Row<'due' | SearchInput>;
};

/** Returns the next action of a submission. */
export function nextAction(state: SubmissionState, input: Input, conditions: Conditions): Action {
  const row: Partial<Row<Input>> = SUBMISSION_TABLE[state];
  for (const rule of row[input] ?? []) {
    if (typeof rule === 'string') return rule;
    if (conditions[rule[0]]) return rule[1];
  }
  throw new Error(`no action for ${input} in ${state}`);
}
