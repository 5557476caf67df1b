import type { Logger } from '../observability/log.ts';
import type { FetchOutcome } from './fetch-outcome.ts';
import type { Timing } from './timing.ts';

/** Why a source has no definitions. */
export type MissingDefinitions = {
  readonly kind: 'none' | 'locked' | 'failed';
  readonly isReachable: boolean;
};

/** The last outcome of a source, and the time before the next fetch. */
export type SourceState = { readonly atMs: number; readonly waitMs: number } & (
  | { readonly kind: 'known' }
  | (MissingDefinitions & { readonly reason: string })
);

/** After a failure, or after an answer that a client wants to change. */
export const RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;
const LOCKED_RETRY_MS = 10 * 60_000;

/** The time of the next fetch and the state after an outcome. */
export function stateAfter(
  outcome: FetchOutcome,
  {
    atMs,
    timing,
    hasVersion,
  }: { atMs: number; timing: Pick<Timing, 'freshMs' | 'absentMs'>; hasVersion: boolean },
): SourceState {
  switch (outcome.kind) {
    case 'text':
      return { kind: 'known', atMs, waitMs: timing.freshMs };
    case 'same':
      if (hasVersion) return { kind: 'known', atMs, waitMs: timing.freshMs };
      return {
        kind: 'failed',
        reason: 'it answers 304 unasked',
        isReachable: true,
        atMs,
        waitMs: RETRY_MS,
      };
    case 'none':
      // A source that had definitions may have them again soon.
      return {
        ...outcome,
        isReachable: true,
        atMs,
        waitMs: hasVersion ? RETRY_MS : timing.absentMs,
      };
    case 'locked':
      return { ...outcome, isReachable: true, atMs, waitMs: LOCKED_RETRY_MS };
    case 'failed': {
      const { reason, retryAfterMs = 0, isReachable = false } = outcome;
      const waitMs = Math.min(MAX_RETRY_MS, Math.max(RETRY_MS, retryAfterMs));
      return { kind: 'failed', reason, isReachable, atMs, waitMs };
    }
  }
}

/** One line in the log for each change, not one for each attempt. */
export function logChange(
  before: SourceState | undefined,
  after: SourceState,
  { log, name }: { log: Logger; name: string },
): void {
  if (after.kind === 'known') {
    if (before && before.kind !== 'known')
      log.info(
        { event: 'definitions.available', source: name },
        'node definitions are available again',
      );
    return;
  }
  if (before?.kind === after.kind) return;
  const { kind, reason } = after;
  log[kind === 'failed' ? 'warn' : 'info'](
    { event: 'definitions.missing', source: name, reason },
    MISSING_MESSAGES[kind],
  );
}

const MISSING_MESSAGES: { readonly [kind in MissingDefinitions['kind']]: string } = {
  none: 'the source has no node definitions',
  locked: 'the source wants a key for its node definitions',
  failed: 'could not fetch node definitions',
};
