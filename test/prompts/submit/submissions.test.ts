// A prompt is recorded before each attempt, and its client is answered by what became of it. Each row
// is one way to its job or its end; the model test beside this one has the random ways.
import { expect, onTestFinished, test } from 'vitest';
import type { PromptRow } from '../../../src/ledger/columns.ts';
import { REFUSED_ID, Server, type Service, World, rowOf } from './world.ts';

const MINUTE_MS = 60_000;

/** A world with one process, and the reasons why its prompts wait. */
function open(service: Partial<Service> = {}, outboxLimit = 10) {
  const world = new World(service);
  const reasons: string[] = [];
  const server = new Server(world, { outboxLimit, onReason: (text) => reasons.push(text) });
  onTestFinished(() => server.submissions.close());
  return { world, server, reasons };
}

type Given = Partial<Service> & { readonly isRefused?: boolean; readonly outboxLimit?: number };

const SENT = ['send k'];

test.each<[string, Given, string, string[]]>([
  ['is accepted', {}, '200', [...SENT, 'link k']],
  ['is refused, and nothing of it is left', { isRefused: true }, '400', [...SENT, 'remove k']],
  ['is refused for its key', { answers: ['unauthorized'] }, '401', [...SENT, 'remove k']],
  [
    'is not sent in three attempts: its client may try again',
    { answers: ['down', 'down', 'down'] },
    '502',
    [...SENT, 'record k submitting k', ...SENT, 'record k submitting k', ...SENT, 'remove k'],
  ],
  [
    'finds no capacity: it waits in the outbox',
    { answers: ['full'] },
    '200',
    [...SENT, 'record k outbox k', 'record k sent k', ...SENT, 'link k'],
  ],
  [
    'finds no capacity, and the outbox is full',
    { answers: ['full'], outboxLimit: 0 },
    '503',
    [...SENT, 'remove k'],
  ],
  ['has its answer lost, and a job', { answers: ['take and lose'] }, '200', [...SENT, 'link k']],
  [
    'has its answer lost, and no job: the same key is sent again',
    { answers: ['lose'], remembersKeys: false },
    '200',
    [...SENT, 'record k submitting k', ...SENT, 'link k'],
  ],
  [
    'has its answer lost, and its key is used up',
    { answers: ['lose'] },
    '500',
    [...SENT, 'record k submitting k', ...SENT, 'record k unknown k', 'lost k'],
  ],
  [
    'has its answer lost by a service without a list, which may forget keys',
    { answers: ['take and lose'], list: '404' },
    '500',
    [...SENT, 'record k unknown k', 'lost k'],
  ],
  [
    'is answered by a service without its engine, which has no job of it',
    { answers: ['engine down', 'engine down', 'engine down'], remembersKeys: false },
    '502',
    [...SENT, 'record k submitting k', ...SENT, 'record k submitting k', ...SENT, 'remove k'],
  ],
])('a prompt that %s', async (_, { isRefused, outboxLimit, ...service }, answer, events) => {
  const { world, server } = open(service, outboxLimit);
  void server.post('k', isRefused ? { promptId: REFUSED_ID } : {});
  await world.clock.advance(11 * MINUTE_MS);
  expect([world.told.get('k'), world.events]).toEqual([answer, events]);
});

test.each<[string, Given, string, string]>([
  ['link', {}, '200', 'send link'],
  ['outbox', { answers: ['full'] }, '200', 'send outbox outbox sent send link'],
  ['submitting', { answers: ['down'] }, '200', 'send submitting sent send link'],
  ['remove', { isRefused: true }, '400', 'send remove'],
  ['remove', { answers: ['unauthorized'] }, '200', 'send sent send link'],
  ['unknown', { answers: ['take and lose'], list: '404' }, '500', 'send unknown unknown lost'],
])(
  'a prompt whose record `%s` finds no room is answered as it will end, and not lost',
  async (kind, { isRefused, ...service }, answer, events) => {
    const { world, server } = open(service);
    world.failingWrites.push(kind);
    const posted = server.post('k', isRefused ? { promptId: REFUSED_ID } : {});
    await world.clock.advance(11 * MINUTE_MS);
    await posted;
    const shown = world.events
      .map((event) => event.split(' '))
      .map(([kind, , state]) => state ?? kind);
    expect([world.told.get('k'), shown.join(' ')]).toEqual([answer, events]);
  },
);

test.each([
  ['link', 'k'],
  ['attached', 'j1'],
])('a client whose prompt cannot be linked (%s) gets the id that is recorded', async (kind, id) => {
  const { world, server } = open();
  world.failingWrites.push(kind);
  void server.post('k');
  await world.clock.advance(0);
  expect([world.toldIds.get('k'), world.rows.get('k')?.promptId]).toEqual([id, id]);
  await world.clock.advance(MINUTE_MS);
  expect(world.rows.get('k')).toMatchObject({ promptId: id, jobId: 'j1' });
});

test('a prompt that cannot be shown in the outbox is left to another process, and has no place here', async () => {
  const { world, server } = open({ answers: ['full'] });
  void server.post('k');
  await world.clock.advance(0);
  world.failingWrites.push('waits');
  await server.post('left', { number: 1 });
  await world.clock.advance(0);
  expect([world.told.get('left'), server.submissions.outbox.depth()]).toEqual(['200', 1]);
  expect(world.faults).toEqual(['stopped leading left']);
});

test('a later prompt is not sent before one that was accepted when its record found no room', async () => {
  const { world, server } = open({ answers: ['down'] });
  world.failingWrites.push('submitting');
  await Promise.all([server.post('k'), world.clock.advance(1000)]);
  void server.post('later', { number: 1 });
  await world.clock.advance(MINUTE_MS);
  expect(world.events.filter((event) => event.startsWith('send'))).toEqual([
    'send k',
    'send k',
    'send later',
  ]);
});

test.each<[string, Partial<PromptRow>, Given, string[]]>([
  ['was being sent, and has a job', { state: 'submitting' }, {}, ['link k']],
  [
    'was being sent: the same key is sent again',
    { state: 'submitting' },
    {},
    ['record k unanswered k', ...SENT, 'link k'],
  ],
  [
    'was being sent and is refused: no client knows it',
    { state: 'submitting', promptId: REFUSED_ID },
    {},
    ['record k unanswered k', ...SENT, 'remove k'],
  ],
  ['is in the outbox', { state: 'outbox' }, {}, ['record k sent k', ...SENT, 'link k']],
  [
    'is in the outbox and is refused: its client sees the error',
    { state: 'outbox', promptId: REFUSED_ID },
    {},
    ['record k sent k', ...SENT, 'failed k'],
  ],
  [
    'waits while the key of its user is refused',
    { state: 'outbox' },
    { answers: ['unauthorized'] },
    ['record k sent k', ...SENT, 'record k outbox k', 'record k sent k', ...SENT, 'link k'],
  ],
  [
    'was accepted, and whose engine was down: it gets another key each time, recorded first',
    { state: 'outbox' },
    { answers: ['engine down', 'engine down'] },
    [
      'record k sent k',
      'send k',
      'record k sent k.again1',
      'send k.again1',
      'record k sent k.again2',
      'send k.again2',
      'link k',
    ],
  ],
  ['has an unknown outcome: it is not sent again', { state: 'unknown' }, {}, ['lost k']],
  ['is in the outbox and is to end', { state: 'outbox', cancelAskedAtMs: 1 }, {}, ['canceled k']],
  [
    'came with keys of its own, which are gone, and was not sent',
    { state: 'outbox', intentJson: '{"key":"k","hasSecrets":true}' },
    {},
    ['failed k'],
  ],
  [
    'came with keys of its own, and has a job',
    { state: 'sent', intentJson: '{"key":"k","hasSecrets":true}' },
    {},
    ['link k'],
  ],
])('a prompt of another process that %s', async (name, row, service, events) => {
  const { world, server } = open(service);
  if (name.endsWith('has a job')) world.makeJob('k');
  const recorded = rowOf('k', row);
  world.rows.set('k', recorded);
  await server.takeOver(recorded);
  await world.clock.advance(11 * MINUTE_MS);
  expect(world.events).toEqual(events);
});

test('the prompts of a user are sent one by one, in the order of the queue', async () => {
  const { world, server } = open({ answers: ['full'], latencyMs: 1000 });
  void server.post('first', { number: 1 });
  await world.clock.advance(1000);
  void server.post('last', { number: 3 });
  void server.post('second', { number: 2 });
  void server.post('front', { number: -1 });
  await world.clock.advance(MINUTE_MS);
  const steps = world.events.filter((event) => /^(send|link)/.test(event)).slice(1);
  const inTurn = ['front', 'first', 'second', 'last'].flatMap((key) => [
    `send ${key}`,
    `link ${key}`,
  ]);
  expect(steps).toEqual(inTurn);
});

test('a prompt waits as long as the service asks for, and up to a fifth more', async () => {
  const { world, server } = open({ answers: ['full'] });
  void server.post('k');
  await world.clock.advance(4999);
  expect(world.events).not.toContain('link k');
  await world.clock.advance(1001);
  expect(world.events).toContain('link k');
});

test('a service without room on its disk is tried again after two seconds', async () => {
  const { world, server } = open({ answers: ['no storage'] });
  const row = rowOf('k', { state: 'outbox' });
  world.rows.set('k', row);
  await server.takeOver(row);
  await world.clock.advance(3000);
  expect(world.rows.get('k')?.state).toBe('live');
});

test('a service that cannot be reached is tried after 2, 4, 8, 16 and 30 seconds', async () => {
  const { world, server } = open({ answers: Array.from({ length: 6 }, () => 'down' as const) });
  world.rows.set('k', rowOf('k', { state: 'outbox' }));
  await server.takeOver(rowOf('k', { state: 'outbox' }));
  const times: number[] = [];
  for (let second = 1; second <= 120; second++) {
    const before = world.events.length;
    await world.clock.advance(1000);
    if (world.events.slice(before).includes('send k')) times.push(second);
  }
  const waits = times.slice(1).map((at, i) => at - (times[i] ?? 0));
  for (const [i, least] of [2, 4, 8, 16, 30].entries()) {
    expect(waits[i]).toBeGreaterThanOrEqual(least);
    expect(waits[i]).toBeLessThanOrEqual(least * 1.2 + 1);
  }
});

test.each([
  ['has no room', 'full', 'no_room'],
  ['cannot be reached', 'down', 'unreachable'],
  ['refuses the key', 'unauthorized', 'refused_for_now'],
  ['loses its answer', 'lose', 'searching'],
] as const)('prompts say why they wait when the service %s', async (_, answer, reason) => {
  const { world, server, reasons } = open({ answers: ['full', answer], list: '501' });
  void server.post('a', { number: 1 });
  await world.clock.advance(0);
  void server.post('b', { number: 2 });
  await world.clock.advance(6000);
  expect(reasons).toContain('b earlier_prompts');
  expect(reasons.filter((text) => text.startsWith('a '))).toContain(`a ${reason}`);
});

test('a prompt of unknown outcome does not hold up the later ones', async () => {
  const { world, server } = open({ answers: ['full', 'lose'] });
  void server.post('a', { number: 1 });
  await world.clock.advance(0);
  void server.post('b', { number: 2 });
  await world.clock.advance(8000);
  expect(world.events).toContain('link b');
  expect(world.events).not.toContain('link a');
});

test('a prompt waits for those of other processes that come first', async () => {
  const { world, server } = open();
  const elsewhere = new Server(world, {});
  const recorded = rowOf('other', { number: -5, state: 'outbox' });
  world.rows.set('other', recorded);
  world.service.answers.push('full');
  await elsewhere.takeOver(recorded);
  await world.clock.advance(0);
  const other = elsewhere.prompts.get('other');
  if (other) server.livePrompts.add(other);
  void server.post('k');
  await world.clock.advance(3000);
  expect(world.events).not.toContain('send k');
  if (other) server.livePrompts.remove(other);
  await world.clock.advance(1000);
  expect(world.events).toContain('link k');
  await elsewhere.submissions.close();
});

test('a waiting prompt ends at once when it is cancelled, and not twice', async () => {
  const { world, server } = open({ answers: ['full'] });
  void server.post('k');
  await world.clock.advance(0);
  expect(await Promise.all([server.cancel('k'), server.cancel('k')])).toEqual([true, true]);
  expect(await server.cancel('k')).toBe(false);
  await world.clock.advance(MINUTE_MS);
  expect(world.events).toEqual(['send k', 'record k outbox k', 'canceled k']);
});

test('a prompt that is being sent is cancelled with its job', async () => {
  const { world, server } = open({ answers: ['full', 'accept'], latencyMs: 2000 });
  void server.post('k');
  await world.clock.advance(8500);
  expect(await server.cancel('k')).toBe(false);
  await world.clock.advance(2000);
  expect(world.events.slice(-2)).toEqual(['link k', 'cancel j1']);
});

test('a prompt whose job is searched for ends at once; its job is cancelled when it is found', async () => {
  const { world, server } = open({ latencyMs: 5000 });
  const recorded = rowOf('k', { state: 'unknown' });
  world.rows.set('k', recorded);
  void server.takeOver(recorded);
  await world.clock.advance(0);
  expect(await server.cancel('k')).toBe(true);
  expect(world.events).toEqual(['canceled k']);
  world.makeJob('k');
  await world.clock.advance(MINUTE_MS);
  expect(world.events).toEqual(['canceled k', 'cancel j1']);
});

test('another client’s job is not cancelled for a prompt that has ended', async () => {
  const { world, server } = open();
  const recorded = rowOf('k', { state: 'unknown', cancelAskedAtMs: 1 });
  world.rows.set('k', recorded);
  world.search = async () => ({
    ok: true,
    value: { kind: 'found', job: { id: 'theirs' } as never },
  });
  await server.takeOver(recorded);
  await world.clock.advance(11 * MINUTE_MS);
  expect(world.events).toEqual(['canceled k']);
});

test('a prompt of unknown outcome is not sent again when it certainly has no job', async () => {
  const { world, server } = open({ answers: ['lose'] });
  world.search = async () => ({ ok: true, value: { kind: 'none' } });
  void server.post('k');
  await world.clock.advance(MINUTE_MS);
  expect([world.told.get('k'), world.faults]).toEqual(['500', []]);
  expect(world.events.slice(-2)).toEqual(['record k unknown k', 'lost k']);
});

test('nothing more is done after the close', async () => {
  const { world, server } = open({ answers: ['full'] });
  void server.post('k');
  await world.clock.advance(0);
  await server.submissions.close();
  expect(world.clock.sleeping()).toBe(0);
});

test('a prompt that another process took over before it was recorded: the client may try again', async () => {
  const { world, server } = open();
  server.lead = () => {};
  await server.post('k');
  expect([world.told.get('k'), world.events]).toEqual(['503', []]);
});

test('a prompt that another process took over after it was sent gets the id of that record', async () => {
  const { world, server } = open({ latencyMs: 100 });
  const posted = server.post('k');
  await world.clock.advance(50);
  world.leaders.set('k', new Server(world, {}));
  world.rows.set('k', rowOf('k', { promptId: 'theirs' }));
  await world.clock.advance(100);
  await posted;
  expect([world.told.get('k'), world.events]).toEqual(['200', ['send k']]);
});
