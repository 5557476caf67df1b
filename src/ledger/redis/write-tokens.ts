/**
 * The write tokens of the prompts that this process leads. Only the leader may write the progress of a prompt: a late
 * write of a process that stalled while another one took over is refused.
 */
export type WriteTokens = {
  /** The token for a prompt; throws when this process does not lead the prompt. */
  token(key: string): string;
  /** Call when Redis refused a token, because the prompt has another leader or none. Returns the error to throw. */
  refused(key: string, token: string): Error;
};

/** Used when one process has the ledger: every write is allowed without a leader. */
export const NO_LEADER: WriteTokens = {
  token: () => '',
  refused: () => new Error('another process leads this prompt'),
};

/** The reply of a script that refused a write because the process does not lead the prompt. */
export const NOT_LEADER = 0;
