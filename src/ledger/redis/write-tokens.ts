/**
 * Under what token this process looks after which prompts. Their leader alone writes what becomes
 * of them: what a process writes late, that stood still while another took over, is refused.
 */
export type WriteTokens = {
  /** Throws when it is not, or no longer, this process that looks after the prompt. */
  token(key: string): string;
  /** The prompt has another leader, or none any more; gives the error that says so. */
  refused(key: string, token: string): Error;
};

/** Who shares a ledger with no other process may write where nobody leads. */
export const NO_LEADER: WriteTokens = {
  token: () => '',
  refused: () => new Error('another process looks after this prompt'),
};

/** For scripts: `leaders` is what processes agree on in `cluster`; `leads` is true of a live token. */
export const LEAD_COMMON = `
local LOST = 0
local function leads(key, token) return (call('HGET', P .. 'leaders', key) or '') == token end
`;

/** What such a script answers when it has done nothing. */
export const NOT_LEADER = 0;
