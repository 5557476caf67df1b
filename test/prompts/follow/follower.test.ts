// A follower consumes a prompt's events only after its client was answered, and goes on until its history is written.
import { expect, onTestFinished, test } from 'vitest';
import { Follower } from '../../../src/prompts/follow/follower.ts';
import { LivePrompts } from '../../../src/prompts/live-prompts.ts';
import {
  type LogSubscriber,
  type PromptEventLog,
  type PromptLogEntry,
  createLocalEventLog,
} from '../../../src/prompts/prompt-event-log.ts';
import type { JobEvent } from '../../../src/protocol/job-api.ts';
import type { Job, JobStatus } from '../../../src/protocol/v2.ts';
import { Hub } from '../../../src/sockets/hub.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakeSocket, openFake } from '../../support/clients/fake-socket.ts';
import { fakeNewPrompt, fakePorts } from '../fake-ports.ts';

const GRAPH = { '1': { class_type: 'Save', inputs: {} } };
const NEW_PROMPT = fakeNewPrompt(GRAPH);
const jobOf = (status: JobStatus): Job => ({
  id: 'j',
  status,
  created_at: '2026-01-01T00:00:00Z',
  started_at: status === 'queued' ? null : '2026-01-01T00:00:00Z',
  completed_at: null,
  expires_at: '2026-01-02T00:00:00Z',
  queue_position: null,
  progress: null,
  outputs: [],
  error: null,
  urls: { self: '', events: '', cancel: '' },
});

type Answer = JobEvent[] | Error;

/** A follower whose upstream gives these streams, and answers polls with these jobs. */
function open({ streams = [], jobs = [] }: { streams?: Answer[]; jobs?: (Job | Error)[] }) {
  const clock = createFakeClock(0);
  const livePrompts = new LivePrompts();
  const entries: string[] = [];
  const histories: string[] = [];
  const polls: number[] = [];
  const ended: string[] = [];
  let isBroken = false;
  let refused: PromptLogEntry['kind'] | undefined;
  const left: string[] = [];
  const subscribers: LogSubscriber[] = [];
  const endedKeys = new Set<string>();
  const localLog = createLocalEventLog();
  const eventLog: PromptEventLog = {
    ...localLog,
    subscribe(prompt, subscriber) {
      subscribers.push(subscriber);
      localLog.subscribe(prompt, subscriber);
    },
    hasAppliedEnd: (key) => endedKeys.has(key),
    stopLeading: (key) => void left.push(key),
    async append(key: string, entry: PromptLogEntry) {
      if (entry.kind === refused) throw new Error('OOM');
      entries.push(entry.kind === 'input' ? `input ${entry.input.kind}` : entry.kind);
      await localLog.append(key, entry);
    },
  };
  const hub = new Hub({
    remaining: (user) => livePrompts.count(user),
    serverFlags: {},
    previewMethod: 'auto',
    now: () => 0,
  });
  const api = {
    async events() {
      const stream = streams.shift();
      if (stream instanceof Error) throw stream;
      return stream ? { ok: true, value: toStream(stream) } : { ok: false, error: {} };
    },
    async get() {
      polls.push(clock.now());
      const job = jobs.length > 1 ? jobs.shift() : jobs[0];
      if (job instanceof Error || !job) throw job ?? new Error('no job');
      return { ok: true, value: job };
    },
  };
  const prompts = {
    async finish(key: string, { statusWord }: { statusWord: string }) {
      if (isBroken) throw new Error('the disk is full');
      histories.push(`${key} ${statusWord}`);
    },
    pruneHistory: async () => {},
  };
  const onEnded = (word: string) => ended.push(word);
  const follower = new Follower(
    fakePorts({
      jobs: { api },
      records: { prompts, eventLog },
      frames: { livePrompts, hub, onEnded },
      policy: { clock },
    }),
    async () => 'final',
  );
  onTestFinished(async () => {
    await follower.close();
    hub.close();
  });
  const prompt = follower.trackPrompt(NEW_PROMPT, { user: 'u' });
  const socket = fakeSocket();
  hub.addConnection(socket.connection, { user: 'u', clientId: 'c', dialect: 'local' });
  async function followJob(): Promise<void> {
    follower.openEventStream(prompt, { jobId: 'j', graph: GRAPH, targets: ['1'] });
    await follower.follow(prompt);
  }
  return {
    follower,
    hub,
    prompt,
    clock,
    socket,
    entries,
    histories,
    polls,
    ended,
    left,
    livePrompts,
    subscribers,
    endedKeys,
    followJob,
    breakDisk: (broken: boolean) => (isBroken = broken),
    refuse: (kind: typeof refused) => void (refused = kind),
  };
}

async function* toStream(events: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* events;
}

const RUNNING: JobEvent = { event: 'status', data: { status: 'running' } } as JobEvent;

test('hosted sockets are told once that a prompt waits in the queue, after the answer', async () => {
  const atPlace = (queue_position: number): JobEvent => ({
    event: 'status',
    data: { status: 'queued', queue_position },
  });
  const { follower, hub, prompt, clock, socket, followJob } = open({
    streams: [[atPlace(1), atPlace(0), RUNNING]],
    jobs: [jobOf('succeeded')],
  });
  const hosted = openFake(hub, { dialect: 'hosted', user: 'u' });
  await followJob();
  await clock.advance(0);
  expect(hosted.heard()).toEqual([]);
  follower.releaseFrames(prompt);
  await clock.advance(0);
  expect(hosted.heard().slice(0, 2)).toEqual(['notification', 'execution_start']);
  expect(hosted.heard().filter((name) => name === 'notification')).toHaveLength(1);
  expect(hosted.messages()[0]?.data.value).toMatch(/^Prompt p waits in the queue/);
  expect(socket.heard()).not.toContain('notification');
});

test('an end that the log does not take is appended when it does', async () => {
  const { follower, prompt, clock, followJob, socket, refuse } = open({
    streams: [[RUNNING]],
    jobs: [jobOf('succeeded')],
  });
  follower.releaseFrames(prompt);
  await followJob();
  refuse('recorded');
  await clock.advance(5000);
  expect(socket.heard()).not.toContain('executing:null');
  refuse(undefined);
  await clock.advance(1000);
  expect(socket.heard().at(-1)).toBe('executing:null');
  expect(follower.find('k')).toBeUndefined();
});

test('an end that another process appends again sends nothing', async () => {
  const { follower, prompt, clock, followJob, socket, subscribers } = open({
    streams: [[RUNNING]],
    jobs: [jobOf('succeeded')],
  });
  follower.releaseFrames(prompt);
  await followJob();
  await clock.advance(0);
  const heard = socket.heard();
  await subscribers[0]?.apply({ kind: 'recorded' }, 9);
  expect(socket.heard()).toEqual(heard);
});

test('a prompt without a job ends when its client was answered', async () => {
  const { follower, prompt, clock, histories, socket } = open({});
  const finished = follower.finishWithoutJob(prompt, { kind: 'canceled' });
  await clock.advance(1000);
  expect(histories).toEqual([]);
  follower.releaseFrames(prompt);
  await finished;
  expect(histories).toHaveLength(1);
  expect(socket.heard()).toEqual(['execution_interrupted', 'executing:null']);
});

test('a release that the log does not take is tried again', async () => {
  const { follower, prompt, clock, entries, refuse } = open({});
  refuse('released');
  follower.releaseFrames(prompt);
  await clock.advance(1000);
  expect(entries).toEqual([]);
  refuse(undefined);
  await clock.advance(5000);
  expect(entries).toEqual(['released']);
});

test('a prompt that this process takes over again is released again', async () => {
  const { follower, prompt, clock, entries, subscribers, refuse } = open({});
  refuse('released');
  follower.releaseFrames(prompt);
  await clock.advance(0);
  subscribers[0]?.onLeadershipLost();
  refuse(undefined);
  follower.releaseFrames(prompt);
  follower.releaseFrames(prompt);
  await clock.advance(5000);
  expect(entries).toEqual(['released']);
});

test('a prompt that is linked at the second attempt does not delay the ends of later ones', async () => {
  const { follower, prompt, clock, histories, followJob, refuse } = open({
    jobs: [jobOf('succeeded')],
  });
  const later = follower.trackPrompt({ ...NEW_PROMPT, key: 'later' }, { user: 'u' });
  for (const taken of [prompt, later]) {
    taken.isTakenOver = true;
    follower.releaseFrames(taken);
  }
  refuse('attached');
  await expect(followJob()).rejects.toThrow('OOM');
  refuse(undefined);
  await followJob();
  follower.openEventStream(later, { jobId: 'j2', graph: GRAPH, targets: ['1'] });
  await follower.follow(later);
  await clock.advance(1000);
  await expect.poll(() => histories, { timeout: 3000 }).toHaveLength(2);
});

test('a prompt whose end is not taken by the log is left to a process that can', async () => {
  const { follower, prompt, left, refuse } = open({});
  refuse('input');
  follower.releaseFrames(prompt);
  await follower.finishWithoutJob(prompt, { kind: 'canceled' });
  expect(left).toEqual(['k']);
});

test('a prompt that another process knows by another id is removed, and its job not followed', async () => {
  const { follower, prompt, livePrompts, clock, polls, followJob } = open({
    jobs: [jobOf('running')],
  });
  await followJob();
  follower.releaseFrames(prompt);
  await clock.advance(0);
  follower.untrack('k', 'p');
  expect(livePrompts.has(prompt)).toBe(true);
  follower.untrack('k', 'other');
  const before = polls.length;
  await clock.advance(60_000);
  expect(polls).toHaveLength(before);
  expect(livePrompts.has(prompt)).toBe(false);
  expect(follower.find('k')).toBeUndefined();
});

test('a prompt that was shown here to its end is not shown again', async () => {
  const { follower, prompt, hub, livePrompts, subscribers, endedKeys } = open({});
  await subscribers[0]?.apply({ kind: 'recorded' }, 1);
  endedKeys.add('k');
  const again = follower.trackPrompt(prompt, { user: 'u' });
  expect(livePrompts.has(again)).toBe(false);
  expect(subscribers).toHaveLength(1);
  // No channel of it is left.
  expect(hub.channels.discardFetched('u', ['p'])).toEqual([]);
});

test('says why a prompt without a job waits, and that its job is in the queue', async () => {
  const { follower, prompt, livePrompts } = open({});
  const reasons = [prompt.waitReason];
  for (const kind of ['waits', 'sought'] as const) {
    await follower.appendEntry(prompt, kind);
    reasons.push(prompt.waitReason);
  }
  livePrompts.setJob(prompt, { jobId: 'j', graph: {}, targets: [] });
  await follower.appendEntry(prompt, 'attached');
  reasons.push(prompt.waitReason);
  await follower.appendEntry(prompt, 'waits');
  reasons.push(prompt.waitReason);
  expect(reasons).toEqual(['submitting', 'in_outbox', 'searching', 'job_queued', 'job_lost']);
  expect(prompt.jobId).toBeNull();
});

test('a prompt without a key waits for it until another process takes it over', async () => {
  const { follower, prompt, livePrompts } = open({});
  livePrompts.awaitCredential(prompt);
  expect(prompt.lacksCredential).toBe(true);
  await follower.appendEntry(prompt, 'taken');
  expect(prompt.lacksCredential).toBe(false);
});

test('closing does not wait for a history that cannot be written: the next process writes it', async () => {
  const { follower, prompt, clock, followJob, histories, breakDisk, livePrompts } = open({
    jobs: [jobOf('succeeded')],
  });
  breakDisk(true);
  follower.releaseFrames(prompt);
  await followJob();
  await clock.advance(100);
  await follower.close();
  expect([histories, livePrompts.has(prompt)]).toEqual([[], true]);
});

test('no frame of another prompt comes between the frames of one event', async () => {
  const { follower, subscribers, socket } = open({});
  follower.trackPrompt({ ...NEW_PROMPT, key: 'k2', promptId: 'p2' }, { user: 'u' });
  const data = { phase: 'started', node_id: '1' } as const;
  const input = { kind: 'event', event: { event: 'x_node', data }, atMs: 0 } as const;
  await Promise.all(subscribers.map((subscriber) => subscriber.apply({ kind: 'input', input }, 0)));
  const ids = socket.messages().map((message) => message.data.prompt_id as string);
  expect(ids).toEqual([...ids].toSorted());
  expect(ids).toHaveLength(8);
});
