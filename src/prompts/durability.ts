import type { Durability } from '../lib/durability.ts';

/** How durable each write of a prompt is before the next step. */
export type PromptDurability = {
  /**
   * When the record of the prompt must be stored: before the plan is sent, or with the commit of
   * the job.
   */
  readonly record: 'before sending' | 'with its job';
  /** The link to the job. The client is answered after it. */
  readonly link: Durability;
  /** The history entry. The last frame leaves after it. */
  readonly history: Durability;
};

/** The durability for each place where an upstream keeps its jobs. */
export const PROMPT_DURABILITY = {
  /**
   * The jobs are in the same ledger. The record is written before the job, into the same log, and
   * the job is found by its label. A lost history entry is made again from the ended job.
   */
  ledger: { record: 'with its job', link: 'soon', history: 'soon' },
  /** A service may not answer, and may have forgotten the job later. */
  service: { record: 'before sending', link: 'fsync', history: 'fsync' },
} as const satisfies { readonly [storage in 'ledger' | 'service']: PromptDurability };
