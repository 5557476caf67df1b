// Prompts of another process: one that this process hears of only when it has ended, and one that it takes over.
import { expect, test } from 'vitest';
import { NEW_PROMPT } from '../../src/ledger/columns.ts';
import type { LogHandlers } from '../../src/prompts/prompt-event-log.ts';
import type { PromptParts } from '../../src/prompts/take-over-prompt.ts';
import { PromptTakeover } from '../../src/prompts/take-over.ts';
import { fakePorts } from './fake-ports.ts';

/** A process whose ledger has a prompt, which it may follow already. */
async function open(more: object, followed?: object) {
  const tracked: string[] = [];
  const left: string[] = [];
  let handlers: LogHandlers | undefined;
  const row = {
    ...NEW_PROMPT,
    key: 'k',
    promptId: 'p',
    user: 'ann',
    number: 1,
    state: 'done',
    intentJson: '{"key":"k","placed":[]}',
    graphJson: '{}',
    targetsJson: '[]',
    extraDataJson: '{}',
    ...more,
  };
  const eventLog = {
    start: async (given: LogHandlers) => void (handlers = given),
    followUser: async () => {},
    takeOver: async () => true,
    stopLeading: (key: string) => void left.push(key),
  };
  const keyring = { onCaller() {}, callerOf: () => ({ user: 'ann' }) };
  const ports = fakePorts({
    jobs: { keyring, needsCredential: () => false },
    records: {
      prompts: { live: async (of?: string) => (of ? [row] : []), get: async () => row },
      eventLog,
    },
    frames: { livePrompts: { setJob() {}, has: () => true } },
  });
  const parts = {
    follower: {
      find: () => undefined,
      trackPrompt(draft: { key: string }) {
        tracked.push(draft.key);
        return followed ?? { ...draft, caller: { user: 'ann' }, jobId: null };
      },
      continueEnd: () => false,
      appendEntry: async () => {
        throw new Error('OOM');
      },
    },
  };
  const takeover = new PromptTakeover(ports, parts as unknown as PromptParts);
  await takeover.start(() => {});
  return { takeover, tracked, left, handlers };
}

test('one that it took over and cannot continue is left to a process that can', async () => {
  const { handlers, tracked, left } = await open({ state: 'live', jobId: 'j' });
  await handlers?.takeOverVacant(['k']);
  expect([tracked, left]).toEqual([['k'], ['k']]);
});

test('one that runs here is shown as running, also when all prompts of its user are read again', async () => {
  const running = { status: 'running', jobId: 'j', caller: { user: 'ann' } };
  const { handlers } = await open({ state: 'live', jobId: 'j' }, running);
  await handlers?.trackUser('ann', { endedKeys: [], withEntries: async (keys) => keys });
  expect(running.status).toBe('running');
});
