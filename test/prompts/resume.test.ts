// A prompt of another process that this one hears of only when it has ended.
import { expect, test } from 'vitest';
import { NEW_PROMPT } from '../../src/ledger/columns.ts';
import { silentLogger } from '../../src/observability/log.ts';
import type { LogHandlers } from '../../src/prompts/prompt-event-log.ts';
import { PromptResumption, type ResumptionOptions } from '../../src/prompts/resume.ts';

/** A process that follows prompts, and whose ledger has one that has ended. */
async function open() {
  const tracked: string[] = [];
  let handlers: LogHandlers | undefined;
  const row = {
    ...NEW_PROMPT,
    key: 'k',
    promptId: 'p',
    user: 'ann',
    number: 1,
    state: 'done',
    intentJson: '{"where":"away","key":"k","placed":[]}',
    graphJson: '{}',
    targetsJson: '[]',
    extraDataJson: '{}',
  };
  const resumption = new PromptResumption({
    ledger: { prompts: { live: async () => [], get: async () => row } },
    promptEventLog: { start: async (given: LogHandlers) => void (handlers = given) },
    keyring: { onCaller() {}, callerOf: () => ({ user: 'ann' }) },
    livePrompts: { setJobId() {} },
    follower: {
      find: () => undefined,
      trackPrompt(draft: { key: string }) {
        tracked.push(draft.key);
        return { ...draft, caller: { user: 'ann' }, jobId: null };
      },
    },
    needsCredential: () => false,
    log: silentLogger(),
  } as unknown as ResumptionOptions);
  await resumption.start();
  return { resumption, tracked, handlers };
}

test('its frames reach sockets here: it has entries', async () => {
  const { handlers, tracked } = await open();
  await handlers?.discover('k');
  expect(tracked).toEqual(['k']);
});

test('it is no live prompt to a client that repeats its id', async () => {
  const { resumption, tracked } = await open();
  await resumption.discover('k');
  expect(tracked).toEqual([]);
});
