import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallCount, Ledger } from '../../src/ledger/ledger.ts';
import { createMemoryLedger } from '../../src/ledger/memory.ts';
import { silentLogger } from '../../src/telemetry.ts';
import { type Census, OTHERS, type Visit, openCensus } from '../../src/v1/census.ts';
import { reportOf } from '../../src/v1/report.ts';

const DAY_MS = 24 * 60 * 60_000;
const VISIT: Visit = { user: 'ann', agent: 'script/1', clientId: '', route: 'GET /queue' };

describe('the census', () => {
  let ledger: Ledger;
  let census: Census;
  let nowMs = 1000;
  const open = () => openCensus({ calls: ledger.calls, log: silentLogger(), now: () => nowMs });
  beforeEach(async () => {
    nowMs = 1000;
    ledger = createMemoryLedger();
    census = await open();
  });
  afterEach(async () => {
    await census.close();
    await ledger.close();
  });
  const seen = async () => {
    await census.flush();
    return ledger.calls.list();
  };

  test('writes nothing down while it counts, and all of it when it closes', async () => {
    for (nowMs of [1000, 2000, 3000]) census.count(VISIT);
    expect(await ledger.calls.list()).toEqual([]);
    await census.close();
    expect(await ledger.calls.list()).toEqual([
      { ...VISIT, count: 3, firstAtMs: 1000, lastAtMs: 3000 },
    ]);
  });

  test('clients that call themselves anew each time are others from the thousandth on', async () => {
    for (let i = 0; i < 1200; i++) census.count({ ...VISIT, agent: `bot/${i}` });
    const rows = await seen();
    expect(rows).toHaveLength(1001);
    expect(rows.find(({ agent }) => agent === OTHERS)).toMatchObject({ user: OTHERS, count: 200 });
  });

  test('a client keeps twenty client ids, also after a restart; calls without one count on', async () => {
    const fresh = (i: number) => census.count({ ...VISIT, clientId: `tab-${i}` });
    for (let i = 0; i < 15; i++) fresh(i);
    await census.close();
    census = await open();
    for (let i = 10; i < 40; i++) fresh(i);
    census.count(VISIT);
    const rows = await seen();
    expect(rows.filter(({ clientId }) => clientId.startsWith('tab-'))).toHaveLength(20);
    expect(rows.find(({ clientId }) => clientId === OTHERS)?.count).toBe(20);
    expect(rows.find(({ clientId }) => clientId === '')?.count).toBe(1);
  });

  test('who has not called for ninety days is forgotten', async () => {
    census.count(VISIT);
    await census.close();
    nowMs += 91 * DAY_MS;
    census = await open();
    expect(await seen()).toEqual([]);
  });
});

describe('the report', () => {
  const calls = (route: string, more: Partial<CallCount> = {}): CallCount => ({
    ...VISIT,
    route,
    count: 1,
    firstAtMs: 0,
    lastAtMs: 0,
    ...more,
  });

  test.each([
    [['POST /prompt', 'GET /api/job/:id/status', 'GET /view'], 'ready', []],
    [
      ['POST /prompt', 'GET /history/:id', 'GET /view'],
      'ready with changes',
      ['GET /history/:id: a record that stays'],
    ],
    [['GET /api/history_v2/:id'], 'ready with changes', ['GET /api/history_v2/:id: a record']],
    [['GET /api/jobs/:id'], 'ready with changes', ['GET /api/jobs/:id: a record']],
    [['POST /prompt', 'GET /ws'], 'ready with changes', ['GET /ws: node-level events']],
    [
      ['POST /prompt', 'GET /queue', 'GET /object_info'],
      'needs v1',
      ['GET /object_info: object_info: node definitions', 'GET /queue: queue listing'],
    ],
    [['GET /of_another_version'], 'needs v1', ['GET /of_another_version: ']],
  ] as const)('of %j says: %s', (routes, verdict, because) => {
    const [client] = reportOf(routes.map((route) => calls(route)));
    expect(client?.verdict).toBe(verdict);
    expect(client?.because.map((reason, i) => reason.startsWith(because[i] ?? '?'))).toEqual(
      because.map(() => true),
    );
  });

  test('is by client, the latest first, its calls by number over all its client ids', () => {
    const report = reportOf([
      calls('GET /queue', { count: 3, clientId: 'a', lastAtMs: 2000 }),
      calls('GET /queue', { count: 4, clientId: 'b' }),
      calls('POST /prompt', { count: 9 }),
      calls('GET /view', { user: 'bob', lastAtMs: 3000 }),
    ]);
    expect(report.map(({ user, calls: n }) => [user, n])).toEqual([
      ['bob', 1],
      ['ann', 16],
    ]);
    expect(report[1]).toMatchObject({
      client_ids: ['a', 'b'],
      last_seen: '1970-01-01T00:00:02.000Z',
      routes: [
        { route: 'POST /prompt', calls: 9, v2: 'POST /api/v2/jobs' },
        { route: 'GET /queue', calls: 7, v2: 'GET /api/v2/jobs', fit: 'changes' },
      ],
    });
  });
});
