import type { Logger } from '../telemetry.ts';
import type { Outcome } from './outcome.ts';
import type { Timing } from './timing.ts';

/** What is missing where a source gave no definitions. */
export type Missing = {
  readonly kind: 'none' | 'locked' | 'failed';
  readonly isReached: boolean;
};

/** The last word of a source, and how long it is not asked again. */
export type Answer = { readonly atMs: number; readonly waitMs: number } & (
  | { readonly kind: 'known' }
  | (Missing & { readonly reason: string })
);

/** After a failure, or after an answer somebody hopes will change. */
export const RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;
const LOCKED_MS = 10 * 60_000;

/** What an outcome means for the next attempt. */
export function answerTo(
  outcome: Outcome,
  {
    atMs,
    timing,
    isHeld,
  }: { atMs: number; timing: Pick<Timing, 'freshMs' | 'noneMs'>; isHeld: boolean },
): Answer {
  switch (outcome.kind) {
    case 'text':
      return { kind: 'known', atMs, waitMs: timing.freshMs };
    case 'same':
      if (isHeld) return { kind: 'known', atMs, waitMs: timing.freshMs };
      return {
        kind: 'failed',
        reason: 'it answers 304 unasked',
        isReached: true,
        atMs,
        waitMs: RETRY_MS,
      };
    case 'none':
      // What it had a while ago may be back sooner.
      return { ...outcome, isReached: true, atMs, waitMs: isHeld ? RETRY_MS : timing.noneMs };
    case 'locked':
      return { ...outcome, isReached: true, atMs, waitMs: LOCKED_MS };
    case 'failed': {
      const { reason, retryAfterMs = 0, isReached = false } = outcome;
      const waitMs = Math.min(MAX_RETRY_MS, Math.max(RETRY_MS, retryAfterMs));
      return { kind: 'failed', reason, isReached, atMs, waitMs };
    }
  }
}

/** One line in the log for each change, not one for each attempt. */
export function tell(
  before: Answer | undefined,
  after: Answer,
  { log, name }: { log: Logger; name: string },
): void {
  if (after.kind === 'known') {
    if (before && before.kind !== 'known')
      log.info({ source: name }, 'node definitions can be had again');
    return;
  }
  if (before?.kind === after.kind) return;
  const { kind, reason } = after;
  log[kind === 'failed' ? 'warn' : 'info']({ source: name, reason }, MISSING_WORDS[kind]);
}

const MISSING_WORDS: { readonly [kind in Missing['kind']]: string } = {
  none: 'no node definitions there',
  locked: 'node definitions need a key',
  failed: 'node definitions could not be fetched',
};
