import { createHash } from 'node:crypto';
import type { Brownout } from '../config/deprecation.ts';
import type { NotifyClients } from '../sockets/hub.ts';
import { NOTIFICATION_TEXTS } from '../translate/notification-texts.ts';

/** The part of a caller that decides whether a brownout affects it. */
export type BrownoutClient = { readonly user: string; readonly agent: string };

/** The effect of a brownout on a call. */
export type BrownoutEffect =
  | { readonly kind: 'refused'; readonly untilMs: number }
  | { readonly kind: 'delayed'; readonly delayMs: number };

/** The length of the windows of a brownout without an end. `Retry-After` needs the end of a window. */
const HOUR_MS = 60 * 60_000;

/** Returns the combined effect of the active brownouts on a client. A refusal has priority over a delay. */
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
 * Returns true when a brownout affects a client at some time. A brownout without an end chooses other clients each
 * hour, so it affects all clients that it names.
 */
function affects(brownout: Brownout, client: BrownoutClient): boolean {
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
  // The hash chooses the same clients for a whole window, and others in the next one.
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

/** The time between the notice to open sockets and the brownout. */
const NOTICE_MS = 10 * 60_000;
const CHECK_INTERVAL_MS = 10_000;

type ScheduledBrownout = Brownout & { readonly fromMs: number };

/** Returns the text about the next brownout that affects a client; `undefined` when there is none. */
export function announcementFor(
  brownouts: readonly Brownout[],
  client: BrownoutClient,
  nowMs: number,
): string | undefined {
  const next = upcoming(brownouts, nowMs).find((brownout) => affects(brownout, client));
  return next && NOTIFICATION_TEXTS.brownout(next);
}

/**
 * Tells open sockets about each brownout shortly before it begins. Returns a function that stops
 * it.
 */
export function scheduleAnnouncements(deps: {
  readonly brownouts: readonly Brownout[];
  readonly now: () => number;
  readonly notifyClients: NotifyClients;
}): () => void {
  const { brownouts, now, notifyClients } = deps;
  const isDue = ({ fromMs }: ScheduledBrownout): boolean => fromMs - NOTICE_MS <= now();
  // Sockets get the text of a brownout whose notice is due when they connect.
  const waiting = new Set(upcoming(brownouts, now()).filter((brownout) => !isDue(brownout)));
  const timer = setInterval(announceDue, CHECK_INTERVAL_MS).unref();

  function announceDue(): void {
    for (const brownout of [...waiting].filter(isDue)) {
      waiting.delete(brownout);
      if (brownout.fromMs <= now()) continue;
      notifyClients((client) =>
        affects(brownout, client) ? NOTIFICATION_TEXTS.brownout(brownout) : undefined,
      );
    }
    if (waiting.size === 0) clearInterval(timer);
  }

  announceDue();
  return () => clearInterval(timer);
}

/** Returns the brownouts that have not begun, the next one first. */
function upcoming(brownouts: readonly Brownout[], nowMs: number): readonly ScheduledBrownout[] {
  return brownouts
    .filter((brownout): brownout is ScheduledBrownout => (brownout.fromMs ?? -Infinity) > nowMs)
    .toSorted((a, b) => a.fromMs - b.fromMs);
}
