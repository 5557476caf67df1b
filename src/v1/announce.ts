import { type Brownout, type Client, isFor } from './brownout.ts';
import { NOTICES } from './notices.ts';

/** Sockets that are open so long before a rehearsal begins are told of it. */
const AHEAD_MS = 10 * 60_000;
/** Waits end early, to heed a clock that is set; none is too long for a timer either. */
const LONGEST_WAIT_MS = 60_000;

type Rehearsal = Brownout & { readonly fromMs: number };

/** Says something to the clients it is for; `undefined`: nothing to this one. */
export type TellClients = (textFor: (client: Client) => string | undefined) => void;

/** What a client is told of the next rehearsal that is for it; `undefined`: none lies ahead. */
export function announcementFor(
  brownouts: readonly Brownout[],
  client: Client,
  nowMs: number,
): string | undefined {
  const next = ahead(brownouts, nowMs).find((brownout) => isFor(brownout, client));
  return next && NOTICES.brownout(next);
}

/** Tells open sockets of each rehearsal shortly before it begins. Returns what ends that. */
export function announceWhenNear(deps: {
  readonly brownouts: readonly Brownout[];
  readonly now: () => number;
  readonly tell: TellClients;
}): () => void {
  const { brownouts, now, tell } = deps;
  // A socket that opens later than that hears of it at once.
  const waiting = new Set(ahead(brownouts, now()).filter((brownout) => waitMs(brownout) > 0));
  let timer: NodeJS.Timeout | undefined;

  function waitMs({ fromMs }: Rehearsal): number {
    return fromMs - AHEAD_MS - now();
  }

  function look(): void {
    for (const brownout of waiting) {
      if (waitMs(brownout) > 0) continue;
      waiting.delete(brownout);
      if (brownout.fromMs <= now()) continue;
      tell((client) => (isFor(brownout, client) ? NOTICES.brownout(brownout) : undefined));
    }
    wait();
  }

  function wait(): void {
    if (waiting.size === 0) return;
    timer = setTimeout(look, Math.min(LONGEST_WAIT_MS, ...[...waiting].map(waitMs)));
    timer.unref();
  }

  wait();
  return () => clearTimeout(timer);
}

/** Those that have not begun, the next one first. */
function ahead(brownouts: readonly Brownout[], nowMs: number): readonly Rehearsal[] {
  return brownouts
    .filter((brownout): brownout is Rehearsal => (brownout.fromMs ?? -Infinity) > nowMs)
    .toSorted((a, b) => a.fromMs - b.fromMs);
}
