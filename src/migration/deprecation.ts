import { setTimeout as delay } from 'node:timers/promises';
import { isoTime } from '../lib/clock.ts';
import { V1_ROUTES, type V1RouteName, successorLink } from './v1-routes.ts';
import type { DeprecationSettings } from '../config/deprecation.ts';
import {
  scheduleAnnouncements,
  announcementFor,
  type BrownoutClient,
  effectOf,
} from './brownout.ts';
import type { NotifyClients } from '../sockets/hub.ts';
import type { CountedCall } from './usage-counter.ts';
import { V1Error, plainError } from '../dialects/errors.ts';

type DeprecationOptions = DeprecationSettings & {
  readonly now: () => number;
  /** Counts a call. Failed and refused calls also count. */
  readonly countCall: (call: CountedCall) => void;
};

/** The headers that a page of another origin may read. */
export const DEPRECATION_HEADERS = 'Deprecation, Sunset, Link';

/** Tells v1 clients that their API is deprecated: headers, notices and brownouts. */
export class Deprecation {
  readonly countCall: (call: CountedCall) => void;
  readonly #options: DeprecationOptions;
  readonly #commonHeaders: Readonly<Record<string, string>>;

  constructor(options: DeprecationOptions) {
    const { deprecatedAtMs, sunsetAtMs, countCall } = options;
    this.#options = options;
    this.countCall = countCall;
    this.#commonHeaders = {
      Deprecation: `@${Math.floor(deprecatedAtMs / 1000)}`,
      ...(sunsetAtMs !== undefined && { Sunset: new Date(sunsetAtMs).toUTCString() }),
    };
  }

  /** Returns the headers for every answer of a route. `prefix` is the public path in front of the server's own. */
  headersFor(
    route: V1RouteName,
    params: Readonly<Record<string, string>>,
    prefix: string,
  ): Readonly<Record<string, string>> {
    const link = successorLink(route, params);
    return link === undefined
      ? this.#commonHeaders
      : { ...this.#commonHeaders, Link: `<${prefix}${link}>; rel="successor-version"` };
  }

  /** Returns the notice about the next brownout that affects a client; `undefined` when there is none. */
  nextBrownoutNotice(client: BrownoutClient): string | undefined {
    const { brownouts, now } = this.#options;
    return announcementFor(brownouts, client, now());
  }

  /** Notifies connected clients shortly before each brownout. Returns a function that stops it. */
  startAnnouncing(notifyClients: NotifyClients): () => void {
    const { brownouts, now } = this.#options;
    return scheduleAnnouncements({ brownouts, now, notifyClients });
  }

  /** Delays the call, or returns its refusal, when a brownout affects this client. */
  async brownoutRefusal(route: V1RouteName, client: BrownoutClient): Promise<V1Error | undefined> {
    const { brownouts, now } = this.#options;
    const effect = effectOf(brownouts, client, now());
    if (effect?.kind === 'delayed') await delay(effect.delayMs, undefined, { ref: false });
    return effect?.kind === 'refused' ? brownoutError(route, effect.untilMs, now()) : undefined;
  }
}

/** Returns the refusal of a call. Its status is 503, not 410, because a brownout is temporary. */
function brownoutError(route: V1RouteName, untilMs: number, nowMs: number): V1Error {
  const { call } = V1_ROUTES[route];
  const instead = call === null ? 'v2 has nothing in its place yet' : `v2 has ${call} in its place`;
  const message =
    `A brownout is on until ${isoTime(untilMs)}: the end of the v1 API is being ` +
    `rehearsed, and ${route} is refused on purpose; ${instead}.`;
  const seconds = Math.max(1, Math.ceil((untilMs - nowMs) / 1000));
  return new V1Error(503, plainError('brownout', message), {
    headers: { 'Retry-After': String(seconds) },
  });
}
