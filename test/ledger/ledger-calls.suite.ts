import { beforeEach, describe, expect, test } from 'vitest';
import type { CallCount, Ledger } from '../../src/ledger/ledger.ts';

function calls(more: Partial<CallCount> = {}): CallCount {
  return {
    user: 'ann',
    agent: 'script/1',
    clientId: '',
    route: 'GET /queue',
    count: 1,
    firstAtMs: 1000,
    lastAtMs: 1000,
    ...more,
  };
}

/** The tests of counted calls that every ledger passes. */
export function callStoreSuite(ledgerOf: () => Ledger): void {
  let ledger: Ledger;
  beforeEach(() => {
    ledger = ledgerOf();
  });

  describe('calls', () => {
    test('counts of one client and route add up, from the earliest call to the latest', async () => {
      await ledger.calls.add([calls({ count: 2, firstAtMs: 2000, lastAtMs: 3000 })]);
      await ledger.calls.add([calls({ count: 3, firstAtMs: 1000, lastAtMs: 2500 })]);
      expect(await ledger.calls.list()).toEqual([
        calls({ count: 5, firstAtMs: 1000, lastAtMs: 3000 }),
      ]);
    });

    test.each([
      ['user', { user: 'bob' }],
      ['agent', { agent: 'script/2' }],
      ['client id', { clientId: 'tab' }],
      ['route', { route: 'GET /ws' }],
    ] as const)('another %s is counted apart', async (_what, other) => {
      await ledger.calls.add([calls(), calls(other)]);
      const rows = await ledger.calls.list();
      expect(rows).toHaveLength(2);
      expect(rows).toEqual(expect.arrayContaining([calls(), calls(other)]));
    });

    test('counts of clients whose last call is old are removed, and begin again', async () => {
      await ledger.calls.add([
        calls({ route: 'GET /ws', lastAtMs: 1999 }),
        calls({ lastAtMs: 2000 }),
      ]);
      await ledger.calls.expire(2000);
      expect(await ledger.calls.list()).toEqual([calls({ lastAtMs: 2000 })]);
      await ledger.calls.add([calls({ route: 'GET /ws', lastAtMs: 5000 })]);
      expect(await ledger.calls.list()).toContainEqual(calls({ route: 'GET /ws', lastAtMs: 5000 }));
    });
  });
}
