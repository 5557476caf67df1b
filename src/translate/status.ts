import type { JobStatus } from '../wire/v2.ts';
import type { StatusWord } from '../wire/v1.ts';

/** The states of `GET /api/jobs`. */
export type ListState = 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled';

/** What is known of a job beyond its v2 state. */
export type Evidence = {
  /** It has shown a node, a step, a preview or an output. */
  readonly active: boolean;
  /** A client asked for its end. */
  readonly cancelAsked: boolean;
  readonly errorCode?: string | undefined;
};

type Row = {
  readonly word: (evidence: Evidence) => StatusWord;
  readonly list: ListState;
};

/** v2 state → v1's words, in the order the v2 contract lists the states. */
const V1_STATE = {
  queued: { word: asked('queued_waiting'), list: 'pending' },
  running: {
    word: (evidence) => asked(evidence.active ? 'executing' : 'preparing')(evidence),
    list: 'in_progress',
  },
  succeeded: { word: () => 'success', list: 'completed' },
  canceling: { word: () => 'cancel_requested', list: 'cancelled' },
  canceled: { word: () => 'cancelled', list: 'cancelled' },
  failed: {
    word: ({ errorCode }) => (isDeterministic(errorCode) ? 'non_retryable_error' : 'error'),
    list: 'failed',
  },
  expired: { word: ({ cancelAsked }) => (cancelAsked ? 'cancelled' : 'lost'), list: 'failed' },
} as const satisfies Record<JobStatus, Row>;

/** Failures a retry cannot mend: the workflow, its inputs or the account would have to change. */
const DETERMINISTIC = new Set([
  'invalid_workflow',
  'invalid_input',
  'missing_asset',
  'missing_model',
  'workflow_format_ui',
  'insufficient_credits',
  'inactive_subscription',
]);

/** The word `GET /api/job/{id}/status` answers with. */
export function statusWord(status: JobStatus, evidence: Evidence): StatusWord {
  return V1_STATE[status].word(evidence);
}

/** The state `GET /api/jobs` lists a live job under. */
export function listState(status: JobStatus, evidence: Evidence): ListState {
  const { list } = V1_STATE[status];
  return list !== 'cancelled' && evidence.cancelAsked && list !== 'completed' && list !== 'failed'
    ? 'cancelled'
    : list;
}

/** Status words back to list states, for finished prompts. */
export const LIST_STATE_OF_WORD = {
  success: 'completed',
  error: 'failed',
  non_retryable_error: 'failed',
  lost: 'failed',
  cancelled: 'cancelled',
  submitted: 'pending',
  queued_waiting: 'pending',
  preparing: 'in_progress',
  executing: 'in_progress',
  cancel_requested: 'cancelled',
} as const satisfies Record<StatusWord, ListState>;

function asked(otherwise: StatusWord): (evidence: Evidence) => StatusWord {
  return ({ cancelAsked }) => (cancelAsked ? 'cancel_requested' : otherwise);
}

function isDeterministic(code: string | undefined): boolean {
  return code !== undefined && DETERMINISTIC.has(code);
}
