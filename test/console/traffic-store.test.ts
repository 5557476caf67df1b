import { afterEach, describe, expect, test, vi } from 'vitest';
import { bodyOf } from '../../src/console/traffic/captured-body.ts';
import { TrafficStore } from '../../src/console/traffic-store.ts';

const ENTRY = {
  kind: 'call',
  at_ms: 0,
  ms: null,
  prompt_id: null,
  job_id: null,
  cause_id: null,
} as const;
const ONE = { user: 'one', isAll: false };
const ALL = { user: 'one', isAll: true };

afterEach(() => void vi.useRealTimers());

describe('recorded traffic', () => {
  test('is nothing while no reader is there, and goes when the reader has gone', () => {
    vi.useFakeTimers();
    const store = new TrafficStore({ now: Date.now });
    expect([store.isRecording(), store.isWanted('one')]).toEqual([false, false]);
    store.hold(ONE);
    expect([store.isRecording(), store.isWanted('one')]).toEqual([true, true]);
    store.add({ user: 'one', entry: ENTRY });
    vi.advanceTimersByTime(60_000);
    store.hold(ONE);
    vi.advanceTimersByTime(60_000);
    expect(store.changedAfter(0, ONE).entries).toHaveLength(1);
    vi.advanceTimersByTime(140_000);
    expect([store.isRecording(), store.changedAfter(0, ONE).entries]).toEqual([false, []]);
  });

  test('of a user is seen by that user and by the operator', () => {
    const store = new TrafficStore({ now: () => 0 });
    store.hold(ONE);
    expect(store.isWanted('two')).toBe(false);
    store.hold(ALL);
    expect([store.isWanted('two'), store.isWanted(undefined)]).toEqual([true, true]);
    const own = store.add({ user: 'one', entry: ENTRY }).entry.id;
    const other = store.add({ user: 'two', entry: ENTRY }).entry.id;
    const unknown = store.add({ user: undefined, entry: ENTRY }).entry.id;
    const seenBy = (scope: typeof ONE) => store.changedAfter(0, scope).entries.map(({ id }) => id);
    expect([seenBy(ONE), seenBy(ALL)]).toEqual([[own], [own, other, unknown]]);
    expect([store.find(other, ONE), store.find(unknown, ONE)]).toEqual([undefined, undefined]);
    expect(store.find(other, ALL)?.user).toBe('two');
    store.close();
  });

  test('is answered once, and again when it changes', () => {
    const store = new TrafficStore({ now: () => 0 });
    store.hold(ONE);
    const first = store.add({ user: 'one', entry: ENTRY });
    store.add({ user: 'one', entry: ENTRY });
    const { revision } = store.changedAfter(0, ONE);
    expect(store.changedAfter(revision, ONE).entries).toEqual([]);
    store.update(first, { status: 200 });
    expect(store.changedAfter(revision, ONE).entries).toMatchObject([{ id: 1, status: 200 }]);
    store.close();
  });

  test('takes up no more than 32 MiB and 4,000 entries', () => {
    const store = new TrafficStore({ now: () => 0 });
    store.hold(ONE);
    for (let i = 0; i < 5000; i++) store.add({ user: 'one', entry: ENTRY });
    expect(store.changedAfter(0, ONE)).toMatchObject({ oldest_id: 1001, dropped: 1000 });
    const large = Buffer.alloc(1024 * 1024);
    for (let i = 0; i < 600; i++) {
      const recorded = store.add({ user: 'one', entry: ENTRY, request: bodyOf(large) });
      store.update(recorded, { status: 200 });
    }
    const { memory_bytes: bytes } = store.changedAfter(0, ONE);
    expect(bytes).toBeGreaterThan(16 * 1024 * 1024);
    expect(bytes).toBeLessThanOrEqual(32 * 1024 * 1024);
    store.close();
  });
});
