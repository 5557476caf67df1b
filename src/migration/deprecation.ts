import { setTimeout as delay } from 'node:timers/promises';
import { SUCCESSORS, type V1RouteName, successorLink } from './successors.ts';
import type { Brownout } from '../config/deprecation.ts';
import { scheduleAnnouncements, announcementFor } from './announce-brownout.ts';
import type { NotifyClients } from '../sockets/hub.ts';
import { type BrownoutClient, effectOf } from './brownout.ts';
import type { UsageCounter } from './usage-counter.ts';
import { V1Error, plainError } from '../dialects/errors.ts';

/** Tells v1 clients that their API is deprecated: headers, notices and brownouts. */
export type Deprecation = {
  /** Headers of every answer of a route; they change nothing else of it. */
  headersFor(
    route: V1RouteName,
    params: { readonly [name: string]: string },
    /** Public path in front of the server's own. */
    prefix?: string,
  ): { readonly [name: string]: string };
  /** Delays the call, or throws its refusal, when a brownout affects this client. */
  checkBrownout(route: V1RouteName, client: BrownoutClient): Promise<void>;
  /** The notice about the next brownout that affects a client; `undefined`: there is none. */
  nextBrownoutNotice(client: BrownoutClient): string | undefined;
  /** Notifies connected clients shortly before each brownout. Returns a function that stops it. */
  startAnnouncing(notifyClients: NotifyClients): () => void;
  /** True when any brownout is configured. */
  readonly hasBrownouts: boolean;
  /** Counts a call, whatever its outcome. */
  readonly countCall: UsageCounter['count'];
};

type DeprecationOptions = {
  /** RFC 9745. */
  readonly deprecatedAtMs: number;
  /** RFC 8594. */
  readonly sunsetAtMs: number | undefined;
  readonly brownouts: readonly Brownout[];
  readonly now: () => number;
  readonly countCall: UsageCounter['count'];
};

/** The headers a page of another origin may read. */
export const DEPRECATION_HEADERS = 'Deprecation, Sunset, Link';

export function createDeprecation({
  deprecatedAtMs,
  sunsetAtMs,
  brownouts,
  now,
  countCall,
}: DeprecationOptions): Deprecation {
  const commonHeaders = {
    Deprecation: `@${Math.floor(deprecatedAtMs / 1000)}`,
    ...(sunsetAtMs !== undefined && { Sunset: new Date(sunsetAtMs).toUTCString() }),
  };
  return {
    countCall,
    hasBrownouts: brownouts.length > 0,
    headersFor(route, params, prefix = '') {
      const link = successorLink(route, params);
      return link === undefined
        ? commonHeaders
        : { ...commonHeaders, Link: `<${prefix}${link}>; rel="successor-version"` };
    },
    nextBrownoutNotice: (client) => announcementFor(brownouts, client, now()),
    startAnnouncing: (notifyClients) =>
      scheduleAnnouncements({ brownouts, now, notifyClients: notifyClients }),
    async checkBrownout(route, client) {
      if (brownouts.length === 0) return;
      const effect = effectOf(brownouts, client, now());
      if (effect?.kind === 'delayed') await delay(effect.delayMs, undefined, { ref: false });
      if (effect?.kind === 'refused') throw brownoutError(route, effect.untilMs, now());
    },
  };
}

/** Temporary, so a 503 and not the 410 of the day itself. */
function brownoutError(route: V1RouteName, untilMs: number, nowMs: number): V1Error {
  const { call } = SUCCESSORS[route];
  const instead = call === null ? 'v2 has nothing in its place yet' : `v2 has ${call} in its place`;
  const message =
    `A brownout is on until ${new Date(untilMs).toISOString()}: the end of the v1 API is being ` +
    `rehearsed, and ${route} is refused on purpose; ${instead}.`;
  const seconds = Math.max(1, Math.ceil((untilMs - nowMs) / 1000));
  return new V1Error(503, plainError('brownout', message), {
    headers: { 'Retry-After': String(seconds) },
  });
}
