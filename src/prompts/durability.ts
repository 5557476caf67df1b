import type { Durability } from '../lib/durability.ts';

/** How durable each write of a prompt is before its next step. */
export type PromptDurability = {
  /** When its record has to be stored: before it is sent, or with the commit of its job. */
  readonly record: 'before sending' | 'with its job';
  /** Its link to the job. The client is answered after it. */
  readonly link: Durability;
  /** That its job has begun: such a job is never sent again. Frames of its nodes leave after it. */
  readonly begun: Durability;
  /** Its history entry. The last frame leaves after it. */
  readonly history: Durability;
};

/** By where the upstream keeps its jobs. */
export const PROMPT_DURABILITY = {
  /**
   * The record is written before the job, into the same log; the job is found again by its label. A
   * history entry that is lost is made again from the ended job.
   */
  ledger: {
    record: 'with its job',
    link: 'transient',
    begun: 'transient',
    history: 'soon',
  },
  /** The service may not answer, and may have forgotten the job later. */
  service: { record: 'before sending', link: 'fsync', begun: 'soon', history: 'fsync' },
} as const satisfies { readonly [storage in 'ledger' | 'service']: PromptDurability };
