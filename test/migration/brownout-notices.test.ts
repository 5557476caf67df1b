// A brownout is announced to the hosted sockets of the clients it is for.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Brownout } from '../../src/config/deprecation.ts';
import type { Dialect } from '../../src/dialects/dialect.ts';
import { Hub } from '../../src/sockets/hub.ts';
import { Deprecation } from '../../src/migration/deprecation.ts';
import { openFake } from '../support/clients/fake-socket.ts';

const NOW = Date.parse('2027-01-01T00:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let hub: Hub;
beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  hub = new Hub({ remaining: () => 0, serverFlags: {}, previewMethod: 'auto', now: Date.now });
});
afterEach(() => {
  hub.close();
  vi.useRealTimers();
});

function brownout(more: Partial<Brownout>): Brownout {
  const none = { fromMs: undefined, toMs: undefined, delayMs: undefined, client: undefined };
  return { ...none, percent: 100, ...more };
}

function leavingOf(...brownouts: Brownout[]) {
  const dates = { deprecatedAtMs: 0, sunsetAtMs: undefined };
  return new Deprecation({ ...dates, brownouts, now: Date.now, countCall() {} });
}

type Who = { readonly dialect?: Dialect; readonly agent?: string; readonly watches?: boolean };

function open({ dialect = 'hosted', ...who }: Who & { readonly user?: string } = {}) {
  const socket = openFake(hub, { dialect, ...who });
  return () => socket.messages().map(({ data }) => data.value as string);
}

const inAnHour = { fromMs: NOW + 60 * MINUTE, toMs: NOW + 90 * MINUTE };

describe('sockets that are open', () => {
  test('are sent once, ten minutes before', () => {
    const timers = vi.getTimerCount();
    leavingOf(brownout(inAnHour)).startAnnouncing(hub.notifyClients);
    const told = open();
    vi.advanceTimersByTime(50 * MINUTE - 1);
    expect(told()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(told()).toEqual([
      expect.stringContaining('from 2027-01-01T01:00:00.000Z to 2027-01-01T01:30:00.000Z'),
    ]);
    vi.advanceTimersByTime(2 * HOUR);
    expect(told()).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(timers);
  });

  test('are sent each brownout, however far it is', () => {
    const far = { fromMs: NOW + 30 * DAY, toMs: NOW + 31 * DAY };
    const told: (string | undefined)[] = [];
    const client = { user: 'u', agent: 'a' };
    leavingOf(brownout(far), brownout(inAnHour)).startAnnouncing((textFor) => {
      told.push(textFor(client));
    });
    hub.close();
    vi.advanceTimersByTime(30 * DAY - 10 * MINUTE - 1);
    expect(told).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(told[1]).toContain('from 2027-01-31T00:00:00.000Z to ');
  });

  test('are sent one without an end whichever hour it hits them', () => {
    leavingOf(brownout({ fromMs: inAnHour.fromMs, percent: 1 })).startAnnouncing(hub.notifyClients);
    const told = ['u1', 'u2', 'u3'].map((user) => open({ user }));
    vi.advanceTimersByTime(2 * HOUR);
    expect(told.map((texts) => texts().length)).toEqual([1, 1, 1]);
  });

  test('are sent nothing late: the clock was set past its beginning', () => {
    leavingOf(brownout(inAnHour)).startAnnouncing(hub.notifyClients);
    const told = open();
    vi.setSystemTime(inAnHour.fromMs);
    vi.advanceTimersByTime(2 * HOUR);
    expect(told()).toEqual([]);
  });

  test('are sent soon where the clock was set to shortly before it', () => {
    leavingOf(brownout(inAnHour)).startAnnouncing(hub.notifyClients);
    const told = open();
    vi.setSystemTime(inAnHour.fromMs - 5 * MINUTE);
    vi.advanceTimersByTime(MINUTE);
    expect(told()).toHaveLength(1);
  });
});

test('the timer ends with the server, and there is none where nothing lies ahead', () => {
  const before = vi.getTimerCount();
  const [past, near] = [{ fromMs: NOW - DAY }, { fromMs: NOW + MINUTE }];
  leavingOf(brownout({}), brownout(past), brownout(near)).startAnnouncing(hub.notifyClients);
  expect(vi.getTimerCount()).toBe(before);
  const stop = leavingOf(brownout(inAnHour)).startAnnouncing(hub.notifyClients);
  expect(vi.getTimerCount()).toBe(before + 1);
  stop();
  expect(vi.getTimerCount()).toBe(before);
});

describe('a client that connects', () => {
  const client = { user: 'u', agent: 'new-script/2' };

  test('is sent the next brownout that is for it', () => {
    const deprecation = leavingOf(
      brownout({ fromMs: NOW + 3 * DAY }),
      brownout({ fromMs: NOW + DAY, client: 'old-script' }),
      brownout({ fromMs: NOW - DAY, toMs: NOW + DAY, delayMs: 5 }),
    );
    expect(deprecation.nextBrownoutNotice(client)).toContain('from 2027-01-04T00:00:00.000Z: ');
    const old = { ...client, agent: 'old-script/1' };
    expect(deprecation.nextBrownoutNotice(old)).toContain('from 2027-01-02T00:00:00.000Z: ');
    vi.setSystemTime(NOW + 3 * DAY);
    expect(deprecation.nextBrownoutNotice(client)).toBeUndefined();
  });
});
