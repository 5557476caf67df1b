import type { Durability } from '../ledger/ledger.ts';

/** What the writes of a prompt survive before its next step. */
export type PromptDurability = {
  /** Its history entry. The last frame leaves after it. */
  readonly history: Durability;
};

/** By where the upstream keeps its jobs. */
export const PROMPT_DURABILITY = {
  /** The end of the job is on disk before: a history entry that a power cut takes is made again. */
  ledger: { history: 'transient' },
  /** The service may have forgotten the job by then. */
  service: { history: 'fsync' },
} as const satisfies { readonly [storage in 'ledger' | 'service']: PromptDurability };
