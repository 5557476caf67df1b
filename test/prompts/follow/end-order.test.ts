// Jobs that ended while no process followed them stand in the history in the order in which they ran.
import { expect, onTestFinished, test } from 'vitest';
import { createLazyJson } from '../../../src/lib/lazy-json.ts';
import { Follower } from '../../../src/prompts/follow/follower.ts';
import { LivePrompts } from '../../../src/prompts/live-prompts.ts';
import { createLocalEventLog } from '../../../src/prompts/prompt-event-log.ts';
import { ok } from '../../../src/protocol/job-api.ts';
import type { JobStatus } from '../../../src/protocol/v2.ts';
import { Hub } from '../../../src/sockets/hub.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { JOB } from '../../support/upstreams/fake-jobs.ts';
import { fakePorts } from '../fake-ports.ts';

const GRAPH = { '1': { class_type: 'Save', inputs: {} } };

/** Prompts that are followed in the order of their names, as an earlier process left them or not. */
async function open({ isTakenOver }: { readonly isTakenOver: boolean }) {
  const clock = createFakeClock(0);
  const livePrompts = new LivePrompts();
  const histories: string[] = [];
  const answers = new Map<string, (status: JobStatus) => void>();
  const hub = new Hub({
    remaining: (user) => livePrompts.count(user),
    serverFlags: {},
    previewMethod: 'auto',
    now: () => 0,
  });
  const api = {
    events: async () => ({ ok: false, error: {} }),
    get: (_: unknown, id: string) =>
      new Promise((resolve) => {
        answers.set(id, (status) => resolve(ok({ ...JOB, id, status })));
      }),
  };
  const prompts = {
    finish: async (key: string) => void histories.push(key),
    pruneHistory: async () => {},
  };
  const follower = new Follower(
    fakePorts({
      jobs: { api },
      records: { prompts, eventLog: createLocalEventLog() },
      frames: { livePrompts, hub },
      policy: { clock },
    }),
    async () => 'final',
  );
  onTestFinished(async () => {
    for (const answer of answers.values()) answer('succeeded');
    await follower.close();
    hub.close();
  });
  for (const key of ['a', 'b', 'c']) {
    const identity = { key, promptId: key, number: 1, clientId: null, createdAtMs: 0 };
    const lazy = { graph: createLazyJson(GRAPH), extraData: createLazyJson({}) };
    const prompt = follower.trackPrompt({ ...identity, lazy, targets: ['1'] }, { user: 'u' });
    prompt.isTakenOver = isTakenOver;
    follower.releaseFrames(prompt);
    follower.openEventStream(prompt, { jobId: key, graph: GRAPH, targets: ['1'] });
    await follower.follow(prompt);
  }
  await clock.advance(0);
  return {
    follower,
    histories,
    answer: async (id: string, status: JobStatus): Promise<void> => {
      answers.get(id)?.(status);
      await clock.advance(0);
    },
  };
}

test('a resumed prompt that has ended waits for earlier ones that were not read yet', async () => {
  const { answer, histories } = await open({ isTakenOver: true });
  await answer('c', 'succeeded');
  await answer('b', 'succeeded');
  expect(histories).toEqual([]);
  await answer('a', 'succeeded');
  expect(histories).toEqual(['a', 'b', 'c']);
});

test('it does not wait for one that still runs', async () => {
  const { answer, histories } = await open({ isTakenOver: true });
  await answer('a', 'running');
  await answer('b', 'succeeded');
  expect(histories).toEqual(['b']);
});

test('prompts of this process end as their jobs do', async () => {
  const { answer, histories } = await open({ isTakenOver: false });
  await answer('b', 'succeeded');
  expect(histories).toEqual(['b']);
});

test('closing waits for none of them', async () => {
  const { follower, answer } = await open({ isTakenOver: true });
  await answer('b', 'succeeded');
  const startedAtMs = Date.now();
  const closed = follower.close();
  await answer('a', 'running');
  await answer('c', 'running');
  await closed;
  expect(Date.now() - startedAtMs).toBeLessThan(2000);
});
