// A prompt continues where its process ended, by what the ledger knows of it.
import { expect, test } from 'vitest';
import type { PromptRow } from '../../src/ledger/ledger.ts';
import { type PromptParts, takeOverPrompt } from '../../src/prompts/take-over-prompt.ts';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';
import { fakePorts } from './fake-ports.ts';

type Case = {
  readonly row?: Partial<PromptRow> | null;
  readonly prompt?: object;
  readonly isLive?: boolean;
  readonly hasEnded?: boolean;
  readonly isLost?: boolean;
};

/** The steps taken with a prompt, in order. */
async function resumed({ row = {}, ...more }: Case): Promise<string[]> {
  const events: string[] = [];
  const note = (event: string) => async () => void events.push(event);
  const stored = {
    key: 'k',
    jobId: null,
    state: 'submitting',
    intentJson: JSON.stringify({ key: 'k', placed: [] }),
    graphJson: '{}',
    targetsJson: '[]',
    extraDataJson: '{}',
    ...row,
  };
  const ports = fakePorts({
    records: { prompts: { get: async () => (row === null ? undefined : stored) } },
    frames: { livePrompts: { has: () => more.isLive ?? true } },
  });
  const parts = {
    follower: {
      async appendEntry(_: unknown, kind: string) {
        if (kind === 'recorded') events.push('end');
        return !more.isLost;
      },
      continueEnd: () => more.hasEnded ?? false,
      releaseFrames: () => void events.push('release'),
      openEventStream: (_: unknown, { jobId }: { jobId: string }) =>
        void events.push(`attach ${jobId}`),
      follow: note('follow'),
      remove: note('remove'),
    },
    submissions: {
      continue: async ({ state }: { state: string }) => void events.push(`submit ${state}`),
    },
    jobCanceller: { cancelInBackground: () => void events.push('cancel') },
  } as unknown as PromptParts;
  const caller = { user: 'ann' };
  const prompt = { key: 'k', caller, cancelRequested: false, ...more.prompt } as LivePrompt;
  const step = await takeOverPrompt(ports, parts, prompt);
  await step?.();
  return events;
}

test.each<[string, Case, string[]]>([
  ['with a job: it is followed', { row: { jobId: 'j' } }, ['release', 'attach j', 'follow']],
  [
    'with a job that is to end: it is followed and cancelled',
    { row: { jobId: 'j' }, prompt: { cancelRequested: true } },
    ['release', 'attach j', 'follow', 'cancel'],
  ],
  ['that was being sent', {}, ['release', 'submit unanswered']],
  ['in the outbox', { row: { state: 'outbox' } }, ['release', 'submit outbox']],
  ['that was sent', { row: { state: 'sent' } }, ['release', 'submit sent']],
  ['with an unknown outcome', { row: { state: 'unknown' } }, ['release', 'submit unknown']],
  ['without a record: it is removed', { row: null }, ['remove']],
  ['that was removed from the live prompts: it is removed', { isLive: false }, ['remove']],
  [
    'that has ended, and needs no leader: its record stays',
    { isLive: false, row: { state: 'done' } },
    ['end'],
  ],
  ['whose end is in its log: its history is written', { hasEnded: true }, []],
  ['that another process took meanwhile: nothing is done', { isLost: true }, []],
])('a prompt %s', async (_, given, events) => {
  expect(await resumed(given)).toEqual(events);
});
