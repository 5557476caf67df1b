import { expect, onTestFinished, test, vi } from 'vitest';
import { initialProgress } from '../../../src/translate/progress/progress-state.ts';
import { reduceProgress } from '../../../src/translate/progress/progress.ts';
import type { EntryApplier } from '../../../src/prompts/follow/apply-entry.ts';
import { EndingPrompts } from '../../../src/prompts/follow/ending-prompts.ts';
import { FollowedPrompt } from '../../../src/prompts/follow/followed-prompt.ts';
import { JobConsumer } from '../../../src/prompts/follow/job-consumer.ts';
import type { LivePrompt } from '../../../src/prompts/live-prompt.ts';
import { HistoryPruner } from '../../../src/prompts/state/history-pruner.ts';
import type { PromptLogEntry } from '../../../src/prompts/prompt-event-log.ts';
import type { JobEvent } from '../../../src/protocol/job-api.ts';
import { fakePorts } from '../fake-ports.ts';
import { chain } from '../../translate/script.ts';

function open(nextDueMs: () => number | null = () => null) {
  let state = initialProgress('p', chain(['1', 'A'], ['2', 'B']));
  const entries: PromptLogEntry[] = [];
  const eventLog = {
    async append(_key: string, entry: PromptLogEntry) {
      entries.push(entry);
      if (entry.kind === 'input') state = reduceProgress(state, entry.input).state;
    },
  };
  const ports = fakePorts({ records: { eventLog } });
  const options = {
    ports,
    endingPrompts: new EndingPrompts(),
    resendLost: async () => 'final' as const,
    pruner: new HistoryPruner(ports.records.prompts, ports.policy.history),
  };
  const prompt = { key: 'k', caller: { user: 'u' }, status: 'running' } as LivePrompt;
  const applied = { state: () => state, nextDueMs };
  const jobConsumer = new JobConsumer(
    new FollowedPrompt(prompt, applied as unknown as EntryApplier),
    options,
  );
  return { entries, jobConsumer };
}

async function* streamOf(events: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* events;
}

const node = (node_id: string): JobEvent => ({
  event: 'x_node',
  data: { node_id, phase: 'started' },
});
const progress = (current_node: string | null, at?: number): JobEvent => ({
  event: 'progress',
  data: {
    value: 0,
    nodes_done: 1,
    nodes_total: 2,
    current_node,
    step: at ?? null,
    steps: at === undefined ? null : 9,
  },
});

test('progress that names a node that has begun is not written to the log of the prompt', async () => {
  const { entries, jobConsumer } = open();
  await jobConsumer.consume(
    streamOf([node('1'), progress('1'), node('2'), progress('2'), progress('1')]),
  );
  expect(entries).toHaveLength(2);
});

test('progress that says something is: a node not named before, a step', async () => {
  const { entries, jobConsumer } = open();
  await jobConsumer.consume(
    streamOf([progress('1'), progress('1', 0), progress('1', 3), progress('2')]),
  );
  expect(entries).toHaveLength(4);
});

test('a long stream gives others their turn', async () => {
  const { jobConsumer } = open();
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await jobConsumer.consume(streamOf(Array.from({ length: 3200 }, (_, i) => progress('1', i % 9))));
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(100);
});

test('an input that is overdue is not waited for', async () => {
  const delays = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => delays.mockRestore());
  let reads = 0;
  const { jobConsumer } = open(() => (++reads === 1 ? -5 : null));
  await jobConsumer.consume(streamOf([node('1')]));
  // Node.js warns of a negative one.
  expect(delays.mock.calls.map(([, ms]) => ms)).toEqual([0]);
});
