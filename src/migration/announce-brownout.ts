import { type Brownout, type BrownoutClient, affects } from './brownout.ts';
import { NOTIFICATION_TEXTS } from '../translate/notification-texts.ts';

/** Sockets that are open so long before a rehearsal begins are told of it. */
const NOTICE_MS = 10 * 60_000;
/** Waits end early, to heed a clock that is set; none is too long for a timer either. */
const MAX_TIMER_MS = 60_000;

type ScheduledBrownout = Brownout & { readonly fromMs: number };

/** Says something to the clients it is for; `undefined`: nothing to this one. */
export type NotifyClients = (textFor: (client: BrownoutClient) => string | undefined) => void;

/** What a client is told of the next rehearsal that is for it; `undefined`: none lies ahead. */
export function announcementFor(
  brownouts: readonly Brownout[],
  client: BrownoutClient,
  nowMs: number,
): string | undefined {
  const next = upcoming(brownouts, nowMs).find((brownout) => affects(brownout, client));
  return next && NOTIFICATION_TEXTS.brownout(next);
}

/** Tells open sockets of each rehearsal shortly before it begins. Returns what ends that. */
export function scheduleAnnouncements(deps: {
  readonly brownouts: readonly Brownout[];
  readonly now: () => number;
  readonly notifyClients: NotifyClients;
}): () => void {
  const { brownouts, now, notifyClients } = deps;
  // A socket that opens later than that hears of it at once.
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

/** Those that have not begun, the next one first. */
function upcoming(brownouts: readonly Brownout[], nowMs: number): readonly ScheduledBrownout[] {
  return brownouts
    .filter((brownout): brownout is ScheduledBrownout => (brownout.fromMs ?? -Infinity) > nowMs)
    .toSorted((a, b) => a.fromMs - b.fromMs);
}
