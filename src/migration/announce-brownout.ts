import type { Brownout } from '../config/deprecation.ts';
import { type BrownoutClient, affects } from './brownout.ts';
import type { NotifyClients } from '../sockets/hub.ts';
import { NOTIFICATION_TEXTS } from '../translate/notification-texts.ts';

/** Open sockets are told of a brownout this long before it begins. */
const NOTICE_MS = 10 * 60_000;
/** Timers end early, to notice when the clock is set; longer ones would also overflow. */
const MAX_TIMER_MS = 60_000;

type ScheduledBrownout = Brownout & { readonly fromMs: number };

/** The text about the next brownout for this client; `undefined`: there is none. */
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
  // A socket that opens later gets the text when it connects.
  const waiting = new Set(upcoming(brownouts, now()).filter((brownout) => waitMs(brownout) > 0));
  let timer: NodeJS.Timeout | undefined;

  function waitMs({ fromMs }: ScheduledBrownout): number {
    return fromMs - NOTICE_MS - now();
  }

  function announceDue(): void {
    for (const brownout of waiting) {
      if (waitMs(brownout) > 0) continue;
      waiting.delete(brownout);
      if (brownout.fromMs <= now()) continue;
      notifyClients((client) =>
        affects(brownout, client) ? NOTIFICATION_TEXTS.brownout(brownout) : undefined,
      );
    }
    schedule();
  }

  function schedule(): void {
    if (waiting.size === 0) return;
    timer = setTimeout(announceDue, Math.min(MAX_TIMER_MS, ...[...waiting].map(waitMs)));
    timer.unref();
  }

  schedule();
  return () => clearTimeout(timer);
}

/** Brownouts that have not begun, the next one first. */
function upcoming(brownouts: readonly Brownout[], nowMs: number): readonly ScheduledBrownout[] {
  return brownouts
    .filter((brownout): brownout is ScheduledBrownout => (brownout.fromMs ?? -Infinity) > nowMs)
    .toSorted((a, b) => a.fromMs - b.fromMs);
}
