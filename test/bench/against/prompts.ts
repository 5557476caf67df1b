import { type Sample, quantile } from '../measure.ts';

/** A request to the prompter. */
export type Prompts = {
  readonly url: string;
  readonly count: number;
  readonly connections: number;
  readonly pace:
    | 'each after the end of the one before'
    | 'each after an answer'
    | 'each after an answer, none followed';
};

/** Its answer; times in milliseconds. */
export type PromptTimes = {
  /** Of the first POST, since the epoch. */
  readonly startedAtMs: number;
  /** From the POST of each prompt to its terminal frame. */
  readonly endMs: readonly number[];
  /** From the first POST to the last answer. */
  readonly acceptedMs: number;
  /** From the first POST to the last terminal frame, or to the last answer where none is followed. */
  readonly finishedMs: number;
  /** Of all prompts together. */
  readonly bodyBytes: number;
};

/** `cpuMs` is the server's processor time beyond that of one that does nothing. */
export function sampleOf(
  { endMs }: PromptTimes,
  { allMs, idleMs }: { readonly allMs: number; readonly idleMs: number },
): Sample {
  return {
    value: quantile(endMs, 0.5),
    more: { p99Ms: quantile(endMs, 0.99), cpuMs: allMs - idleMs, allCpuMs: allMs },
  };
}
