// A prompt leaves `/queue` in the moment in which `/history` shows it.
import { expect, test } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';
import { LivePrompts } from '../../src/prompts/live-prompts.ts';
import { promptsInQueue } from '../../src/prompts/prompts-in-queue.ts';

function promptOf(key: string, createdAtMs: number): LivePrompt {
  const lazy = { graph: { json: '{}' }, extraData: { json: '{}' } };
  const fields = { key, promptId: key, number: 1, createdAtMs, jobId: key, status: 'running' };
  const state = { caller: { user: 'ann' }, waitReason: 'job_queued' };
  return { ...fields, ...state, lazy } as unknown as LivePrompt;
}

test('a prompt whose history is written is not in the queue any more', async () => {
  const livePrompts = new LivePrompts();
  const ending = promptOf('ending', 1);
  livePrompts.add(ending);
  livePrompts.add(promptOf('next', 2));
  const entries = new Map<string, string>();
  const read: (readonly string[])[] = [];
  const ledger = {
    prompts: {
      entries: async (keys: readonly string[]) => {
        read.push(keys);
        return keys.map((key) => entries.get(key) ?? null);
      },
    },
  } as unknown as Ledger;
  const inQueue = async () =>
    (await promptsInQueue({ livePrompts, ledger }, 'ann')).map(({ key }) => key);

  expect(await inQueue()).toEqual(['ending', 'next']);
  expect(read).toEqual([]);
  Object.assign(ending, { isEnding: true });
  expect(await inQueue()).toEqual(['ending', 'next']);
  entries.set('ending', '{}');
  expect(await inQueue()).toEqual(['next']);
  expect(read).toEqual([['ending'], ['ending']]);
});
