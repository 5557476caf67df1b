import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallCount, Ledger } from '../../src/ledger/ledger.ts';
import { createMemoryLedger } from '../support/app/memory-ledger.ts';
import { silentLogger } from '../../src/observability/log.ts';
import {
  type UsageCounter,
  OTHER_CLIENTS,
  type CountedCall,
  openUsageCounter,
} from '../../src/migration/usage-counter.ts';
import { reportOf } from '../../src/migration/usage-report.ts';

const DAY_MS = 24 * 60 * 60_000;
const CALL: CountedCall = { user: 'ann', agent: 'script/1', clientId: '', route: 'GET /queue' };

describe('the usage counter', () => {
  let ledger: Ledger;
  let usage: UsageCounter;
  let nowMs = 1000;
  const open = () =>
    openUsageCounter({ calls: ledger.calls, log: silentLogger(), now: () => nowMs });
  beforeEach(async () => {
    nowMs = 1000;
    ledger = createMemoryLedger();
    usage = await open();
  });
  afterEach(async () => {
    await usage.close();
    await ledger.close();
  });
  const seen = async () => {
    await usage.flush();
    return ledger.calls.list();
  };

  test('writes nothing down while it counts, and all of it when it closes', async () => {
    for (nowMs of [1000, 2000, 3000]) usage.count(CALL);
    expect(await ledger.calls.list()).toEqual([]);
    await usage.close();
    expect(await ledger.calls.list()).toEqual([
      { ...CALL, count: 3, firstAtMs: 1000, lastAtMs: 3000 },
    ]);
  });

  test('clients that call themselves anew each time are others from the thousandth on', async () => {
    for (let i = 0; i < 1200; i++) usage.count({ ...CALL, agent: `bot/${i}` });
    const rows = await seen();
    expect(rows).toHaveLength(1001);
    expect(rows.find(({ agent }) => agent === OTHER_CLIENTS)).toMatchObject({
      user: OTHER_CLIENTS,
      count: 200,
    });
  });

  test('a client keeps twenty client ids, also after a restart; calls without one count on', async () => {
    const fresh = (i: number) => usage.count({ ...CALL, clientId: `tab-${i}` });
    for (let i = 0; i < 15; i++) fresh(i);
    await usage.close();
    usage = await open();
    for (let i = 10; i < 40; i++) fresh(i);
    usage.count(CALL);
    const rows = await seen();
    expect(rows.filter(({ clientId }) => clientId.startsWith('tab-'))).toHaveLength(20);
    expect(rows.find(({ clientId }) => clientId === OTHER_CLIENTS)?.count).toBe(20);
    expect(rows.find(({ clientId }) => clientId === '')?.count).toBe(1);
  });

  test('who has not called for ninety days is forgotten', async () => {
    usage.count(CALL);
    await usage.close();
    nowMs += 91 * DAY_MS;
    usage = await open();
    expect(await seen()).toEqual([]);
  });
});

describe('the report', () => {
  const calls = (route: string, more: Partial<CallCount> = {}): CallCount => ({
    ...CALL,
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
      ['GET /object_info: node definitions', 'GET /queue: graphs and places'],
    ],
    [['GET /of_another_version'], 'needs v1', ['GET /of_another_version: ']],
  ] as const)('of %j says: %s', (routes, verdict, because) => {
    const [client] = reportOf(routes.map((route) => calls(route)));
    expect(client?.verdict).toBe(verdict);
    expect(client?.because.map((reason, i) => reason.startsWith(because[i] ?? '?'))).toEqual(
      because.map(() => true),
    );
  });

  const named = (report: ReturnType<typeof reportOf>) =>
    report.map(({ agent, socket_agents: sockets, client_ids: ids }) => [agent, sockets, ids]);
  const script = (agent: string, clientId: string, lastAtMs: number) => [
    calls('POST /prompt', { agent, clientId, lastAtMs }),
    calls('GET /view', { agent, lastAtMs }),
  ];
  const socket = (agent: string, clientId: string, more: Partial<CallCount> = {}) =>
    calls('GET /ws', { agent, clientId, ...more });

  test('a script’s WebSocket library is part of it: the client id tells', () => {
    const report = reportOf([
      ...script('python-requests/2.31', 'a', 1),
      ...script('Python-urllib/3.11', 'b', 2),
      socket('(none)', 'a'),
      socket('(none)', 'b'),
      socket('websockets/12.0', 'b'),
    ]);
    expect(named(report)).toEqual([
      ['Python-urllib/3.11', ['(none)', 'websockets/12.0'], ['b']],
      ['python-requests/2.31', ['(none)'], ['a']],
    ]);
    expect(report.map(({ calls: n }) => n)).toEqual([4, 3]);
  });

  test('so are its sockets with ids that are not told apart any more', () => {
    const report = reportOf([
      ...script('requests', 'a', 1),
      ...script('other', 'z', 0),
      socket('(none)', 'a'),
      socket('(none)', OTHER_CLIENTS),
      calls('POST /prompt', { agent: 'other', clientId: OTHER_CLIENTS }),
    ]);
    expect(named(report)).toEqual([
      ['requests', ['(none)'], ['a', OTHER_CLIENTS]],
      ['other', [], ['z', OTHER_CLIENTS]],
    ]);
  });

  test('without a client id that tells, sockets are those of the user’s only program', () => {
    const hosted = [...script('requests', '', 1), socket('websockets', 'random')];
    expect(named(reportOf(hosted))).toEqual([['requests', ['websockets'], ['random']]]);
    const bob = script('other', '', 2).map((row) => ({ ...row, user: 'bob' }));
    expect(reportOf([...hosted, ...bob])).toHaveLength(2);
    const two = [...hosted, ...script('other', '', 2)];
    expect(named(reportOf(two)).toSorted(([a], [b]) => String(a).localeCompare(String(b)))).toEqual(
      [
        ['other', [], []],
        ['requests', [], []],
        ['websockets', [], ['random']],
      ],
    );
  });

  test('a program that listens only is a client, and so is one that polls beside it', () => {
    expect(named(reportOf([socket('listener', 'x')]))).toEqual([['listener', [], ['x']]]);
    const both = [calls('GET /ws', { agent: 'ui' }), calls('GET /queue', { agent: 'ui' })];
    expect(named(reportOf(both))).toEqual([['ui', [], []]]);
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
