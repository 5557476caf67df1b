import { beforeEach, describe, expect, test } from 'vitest';
import type { Ledger, ModelCallRow } from '../../src/ledger/ledger.ts';

const ROW = { scope: 'ann', key: 'k', fingerprint: 'f1', requestId: 'r1', atMs: 1000 };
const HOLDER = { scope: 'ann', key: 'k', requestId: 'r1' };
const ANSWER = {
  state: 'recorded' as const,
  atMs: 2000,
  status: 200,
  contentType: 'audio/wav',
  body: new Uint8Array([0, 255, 13, 10]),
};
const unanswered = { status: null, contentType: null, body: null };
const CONSUMED = { state: 'consumed', ...unanswered } as const;

function modelCall(requestId: string, more: Partial<ModelCallRow> = {}): ModelCallRow {
  return {
    requestId,
    workspace: 'studio',
    user: 'ann',
    model: 'local/delay',
    startedAtMs: 1000,
    endedAtMs: 1500,
    status: 200,
    errorType: null,
    chargedCents: 0,
    replayed: false,
    ...more,
  };
}

/** The tests of the model router's stores that every ledger passes. */
export function modelStoresSuite(ledgerOf: () => Ledger): void {
  let ledger: Ledger;
  beforeEach(() => {
    ledger = ledgerOf();
  });

  describe('replays', () => {
    const again = (more: Partial<typeof ROW> = {}, freeBeforeMs = 0) =>
      ledger.replays.reserve({ ...ROW, requestId: 'r2', ...more }, freeBeforeMs);

    test('a key is reserved once in each scope; a later call gets the reservation', async () => {
      expect(await ledger.replays.reserve(ROW, 0)).toBeUndefined();
      expect(await again({ fingerprint: 'f2' })).toEqual({
        ...ROW,
        ...unanswered,
        state: 'reserved',
      });
      expect(await again({ scope: 'bob' })).toBeUndefined();
      expect(await again({ key: 'k2' })).toBeUndefined();
    });

    test('of many reservations of one key at once a single one succeeds', async () => {
      const tries = ['r1', 'r2', 'r3'].map((requestId) => again({ requestId }));
      const held = await Promise.all(tries);
      expect(held.filter((row) => row === undefined)).toHaveLength(1);
      expect(held.slice(1).map((row) => row?.requestId)).toEqual(['r1', 'r1']);
    });

    test('a recorded answer is read back byte for byte', async () => {
      await ledger.replays.reserve(ROW, 0);
      await ledger.replays.settle(HOLDER, ANSWER);
      const found = await again();
      expect(found).toMatchObject({
        state: 'recorded',
        status: 200,
        contentType: 'audio/wav',
        atMs: 2000,
      });
      expect([...(found?.body ?? [])]).toEqual([0, 255, 13, 10]);
      expect(await ledger.replays.recordedBytes()).toBe(4);
    });

    test('an empty answer is recorded too', async () => {
      await ledger.replays.reserve(ROW, 0);
      await ledger.replays.settle(HOLDER, { ...ANSWER, body: new Uint8Array() });
      expect(await again()).toMatchObject({ state: 'recorded', status: 200 });
    });

    test('a consumed key keeps no answer, not even one that was recorded before', async () => {
      await ledger.replays.reserve(ROW, 0);
      await ledger.replays.settle(HOLDER, ANSWER);
      await ledger.replays.settle(HOLDER, { ...CONSUMED, atMs: 3000 });
      expect(await again()).toEqual({ ...ROW, ...unanswered, atMs: 3000, state: 'consumed' });
      expect(await ledger.replays.recordedBytes()).toBe(0);
    });

    test('a released key is free', async () => {
      await ledger.replays.reserve(ROW, 0);
      await ledger.replays.release(HOLDER);
      expect(await again()).toBeUndefined();
    });

    test.each(['release', 'settle'] as const)(
      'a call that no longer holds the key cannot %s it',
      async (act) => {
        await ledger.replays.reserve(ROW, 0);
        const acts = {
          release: () => ledger.replays.release({ ...HOLDER, requestId: 'old' }),
          settle: () => ledger.replays.settle({ ...HOLDER, requestId: 'old' }, ANSWER),
        };
        await acts[act]();
        expect(await again()).toMatchObject({ state: 'reserved', requestId: 'r1' });
      },
    );

    test('a key is free again once its answer is older than asked, or was expired', async () => {
      await ledger.replays.reserve(ROW, 0);
      await ledger.replays.settle(HOLDER, ANSWER);
      expect(await again({}, 2000)).toMatchObject({ state: 'recorded' });
      expect(await again({}, 2001)).toBeUndefined();
      await ledger.replays.reserve({ ...ROW, key: 'other' }, 0);
      await ledger.replays.expire(1001);
      expect(await again({ key: 'other' })).toBeUndefined();
    });
  });

  describe('model calls', () => {
    test('an audit record is found by its request id', async () => {
      const row = modelCall('r1', { errorType: 'provider_error', status: 502, replayed: true });
      await ledger.modelCalls.insert(row);
      expect(await ledger.modelCalls.get('r1')).toEqual(row);
      expect(await ledger.modelCalls.get('r2')).toBeUndefined();
    });

    test('charges are summed by workspace', async () => {
      await ledger.modelCalls.insert(modelCall('r1', { chargedCents: 5 }));
      await ledger.modelCalls.insert(modelCall('r2', { chargedCents: 7, user: 'ben' }));
      await ledger.modelCalls.insert(modelCall('r3', { chargedCents: 9, workspace: 'other' }));
      expect(await ledger.modelCalls.chargedCents('studio')).toBe(12);
      expect(await ledger.modelCalls.chargedCents('unknown')).toBe(0);
    });

    test('the record of an undelivered answer is corrected', async () => {
      await ledger.modelCalls.insert(modelCall('r1', { chargedCents: 5 }));
      await ledger.modelCalls.amend('r1', { errorType: 'client_disconnected', chargedCents: 0 });
      expect(await ledger.modelCalls.get('r1')).toEqual(
        modelCall('r1', { errorType: 'client_disconnected' }),
      );
    });

    test('old records are removed, unless they were charged', async () => {
      await ledger.modelCalls.insert(modelCall('old', { endedAtMs: 999 }));
      await ledger.modelCalls.insert(modelCall('charged', { endedAtMs: 999, chargedCents: 1 }));
      await ledger.modelCalls.insert(modelCall('new', { endedAtMs: 1000 }));
      await ledger.modelCalls.expire(1000);
      const left = ['old', 'charged', 'new'].map((id) => ledger.modelCalls.get(id));
      expect((await Promise.all(left)).map((row) => row?.requestId)).toEqual([
        undefined,
        'charged',
        'new',
      ]);
    });
  });
}
