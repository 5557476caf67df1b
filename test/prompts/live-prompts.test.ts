// `/queue` is read from the live prompts of a user.
import { describe, expect, test } from 'vitest';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';
import { LivePrompts, shownAsRunning } from '../../src/prompts/live-prompts.ts';
import { isInOutbox } from '../../src/prompts/pending-reason.ts';

function promptOf(key: string, more: object = {}): LivePrompt {
  return {
    key,
    promptId: key,
    number: 1,
    createdAtMs: 0,
    jobId: null,
    status: undefined,
    waitReason: 'submitting',
    caller: { user: 'ann' },
    lazy: { graph: { json: '12345' }, extraData: { json: '{}' } },
    ...more,
  } as unknown as LivePrompt;
}

const keys = (prompts: Iterable<LivePrompt>): string[] => [...prompts].map(({ key }) => key);

describe('the queue of a user', () => {
  test('interrupts what runs, and not a prompt whose end is being recorded', () => {
    const live = new LivePrompts();
    const first = promptOf('first', { status: 'running', createdAtMs: 1 });
    const second = promptOf('second', { status: 'queued', createdAtMs: 2 });
    live.add(first);
    live.add(second);
    expect(keys(live.interruptible('ann'))).toEqual(['first']);
    Object.assign(first, { isEnding: true });
    expect(keys(shownAsRunning(live.list('ann')))).toEqual(['first']);
    expect(keys(live.interruptible('ann'))).toEqual(['second']);
  });

  test('knows of an earlier prompt whose job is still queued', () => {
    const live = new LivePrompts();
    const [first, second] = [promptOf('1', { number: 1 }), promptOf('2', { number: 2 })];
    live.add(first);
    live.add(second);
    expect(live.hasEarlierQueued(second)).toBe(false);
    first.status = 'queued';
    expect(live.hasEarlierQueued(second)).toBe(true);
    expect(live.hasEarlierQueued(first)).toBe(false);
  });
});

describe('a prompt is found', () => {
  test('by an id that is used twice: the newest one', () => {
    const live = new LivePrompts();
    live.add(promptOf('new', { promptId: 'p', createdAtMs: 2 }));
    live.add(promptOf('old', { promptId: 'p', createdAtMs: 1 }));
    expect(live.find('ann', 'p')?.key).toBe('new');
  });

  test('by the id of its job, as long as it has that job, and only by its user', () => {
    const live = new LivePrompts();
    const prompt = promptOf('p');
    const found = () => ['p', 'a', 'b'].filter((id) => live.find('ann', id) === prompt);
    live.add(prompt);
    live.setJob(prompt, { jobId: 'a', graph: {}, targets: [] });
    live.setJob(prompt, { jobId: 'b', graph: {}, targets: [] });
    expect([found(), live.find('bob', 'b')]).toEqual([['p', 'b'], undefined]);
    live.clearJob(prompt);
    expect(found()).toEqual(['p']);
    live.remove(prompt);
    live.setJob(prompt, { jobId: 'a', graph: {}, targets: [] });
    expect(found()).toEqual([]);
  });
});

test('prompts in the outbox are known by user', () => {
  const live = new LivePrompts();
  const prompt = promptOf('k');
  live.add(prompt);
  live.setWaitReason(prompt, 'in_outbox');
  expect([keys(live.inOutbox('ann')), isInOutbox(prompt)]).toEqual([['k'], true]);
  live.setWaitReason(prompt, 'no_room');
  expect([keys(live.inOutbox('ann')), isInOutbox(prompt)]).toEqual([['k'], true]);
  live.removeFromOutbox(prompt);
  expect([keys(live.inOutbox('ann')), isInOutbox(prompt)]).toEqual([[], false]);
});

test('counts prompts by state, and the bytes that clients sent', () => {
  const live = new LivePrompts();
  const statuses = [undefined, 'queued', 'running', 'failed'];
  const prompts = statuses.map((status, i) => promptOf(String(i), { status }));
  for (const prompt of prompts) live.add(prompt);
  expect(live.countByState()).toEqual({ waiting: 1, queued: 1, running: 1, ending: 1 });
  expect(live.bytes()).toBe(4 * 7);
  for (const prompt of prompts) live.remove(prompt);
  expect(live.bytes()).toBe(0);
});

test('reports each change of the reason to wait once', () => {
  const reports: string[] = [];
  const live = new LivePrompts(({ key }, reason) => void reports.push(`${key} ${reason}`));
  const prompt = promptOf('k');
  live.add(prompt);
  live.setWaitReason(prompt, 'no_room');
  live.setWaitReason(prompt, 'no_room');
  live.setJob(prompt, { jobId: 'j', graph: {}, targets: [] });
  live.clearJob(prompt);
  live.awaitCredential(prompt);
  expect(reports).toEqual(['k submitting', 'k no_room', 'k job_queued', 'k job_lost', 'k no_key']);
});
