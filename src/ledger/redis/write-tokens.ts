/**
 * The tokens under which this process leads prompts. Only the leader of a prompt writes its
 * progress: a late write of a process that stalled while another took over is refused.
 */
export type WriteTokens = {
  /** The token for a prompt; throws when this process does not lead the prompt, or no longer. */
  token(key: string): string;
  /**
   * Called when Redis refused a token: the prompt has another leader, or none. Returns the error to
   * throw.
   */
  refused(key: string, token: string): Error;
};

/** Used when one process has the ledger: every write is allowed without a leader. */
export const NO_LEADER: WriteTokens = {
  token: () => '',
  refused: () => new Error('another process looks after this prompt'),
};

/** The reply of a script that refused a write because the process does not lead the prompt. */
export const NOT_LEADER = 0;
