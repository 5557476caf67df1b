import { createHash } from 'node:crypto';
import type { Brownout } from '../config/deprecation.ts';

/** The part of a caller that decides whether a brownout affects it. */
export type BrownoutClient = { readonly user: string; readonly agent: string };

/** The effect of a brownout on a call. */
export type BrownoutEffect =
  | { readonly kind: 'refused'; readonly untilMs: number }
  | { readonly kind: 'delayed'; readonly delayMs: number };

/** A brownout without an end has a window each hour, so that `Retry-After` has an end to name. */
const HOUR_MS = 60 * 60_000;

/** The combined effect of the active brownouts on a client; a refusal counts before any delay. */
export function effectOf(
  brownouts: readonly Brownout[],
  client: BrownoutClient,
  nowMs: number,
): BrownoutEffect | undefined {
  const active = brownouts.filter(
    (brownout) => isActive(brownout, nowMs) && isSelected(brownout, client, nowMs),
  );
  const refusals = active.filter(({ delayMs }) => delayMs === undefined);
  if (refusals.length > 0) {
    return {
      kind: 'refused',
      untilMs: Math.max(...refusals.map((brownout) => windowOf(brownout, nowMs).endMs)),
    };
  }
  const delayMs = Math.max(0, ...active.map((brownout) => brownout.delayMs ?? 0));
  return delayMs > 0 ? { kind: 'delayed', delayMs } : undefined;
}

/**
 * True when this brownout affects some call of a client. One without an end affects other clients each
 * hour, and so for all that it names.
 */
export function affects(brownout: Brownout, client: BrownoutClient): boolean {
  const { fromMs = 0, toMs } = brownout;
  return isSelected(toMs === undefined ? { ...brownout, percent: 100 } : brownout, client, fromMs);
}

function isActive({ fromMs = -Infinity, toMs = Infinity }: Brownout, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < toMs;
}

function isSelected(brownout: Brownout, { user, agent }: BrownoutClient, nowMs: number): boolean {
  const { client, percent } = brownout;
  if (client !== undefined && !agent.toLowerCase().includes(client.toLowerCase())) return false;
  if (percent >= 100) return true;
  const { startMs } = windowOf(brownout, nowMs);
  // The same clients for the whole window, others in the next one.
  const digest = createHash('sha256').update(`${startMs}\0${user}\0${agent}`).digest();
  return (digest.readUInt32BE(0) / 2 ** 32) * 100 < percent;
}

function windowOf(
  { fromMs, toMs }: Brownout,
  nowMs: number,
): { readonly startMs: number; readonly endMs: number } {
  if (toMs !== undefined) return { startMs: fromMs ?? 0, endMs: toMs };
  const startMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  return { startMs, endMs: startMs + HOUR_MS };
}
