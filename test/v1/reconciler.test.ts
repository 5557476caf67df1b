// A prompt its client was told of is sent again until its fate is certain.
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/telemetry.ts';
import type { Repeated, Sight } from '../../src/v1/again.ts';
import type { LivePrompt } from '../../src/v1/board.ts';
import type { JoblessEnd } from '../../src/v1/listener.ts';
import { DEFAULT_PACE } from '../../src/v1/pace.ts';
import type { Plan } from '../../src/v1/plan.ts';
import { type Doubt, createReconciler } from '../../src/v1/reconciler.ts';
import type { Job } from '../../src/wire/v2.ts';

const prompt = { key: 'k', promptId: 'p', caller: { user: 'ann' } } as LivePrompt;
const plan = { label: 'k', key: 'k', secrets: {}, outputs: [] as string[] } as unknown as Plan;
const job = { id: 'j' } as Job;
const error = { status: 500, code: 'x', message: '', details: null };
const ACCEPTED: Repeated = { kind: 'accepted', plan, job, nodeErrors: {} };
const KEY_USED: Repeated = { kind: 'unknown', plan, error, isKeyUsed: true };
const CROWDED: Repeated = { kind: 'crowded', plan, error };

/** What looks and submissions come to, one after the other; the last one stays. */
async function fateOf(
  told: Doubt['told'],
  { looks, sends }: { looks: (Sight | Error)[]; sends: (Repeated | Error)[] },
): Promise<{ fate: string; sent: number }> {
  let sent = 0;
  const next = <T>(list: (T | Error)[]): T => {
    const one = list.length > 1 ? list.shift() : list[0];
    if (one === undefined || one instanceof Error) throw one ?? new Error('nothing is expected');
    return one;
  };
  const fate = await new Promise<string>((resolve) => {
    const reconciler = createReconciler({
      again: {
        look: async () => next(looks),
        async send() {
          sent += 1;
          return next(sends);
        },
      },
      follower: {
        note: async () => true,
        settle: async (_: LivePrompt, how: JoblessEnd) => resolve(how.kind),
      } as unknown as Parameters<typeof createReconciler>[0]['follower'],
      birth: async (_prompt, _plan, { id }) => resolve(`has ${id}`),
      forget: async () => resolve('forgotten'),
      journal: { leads: () => true },
      ledger: { prompts: { setIntent: async () => {} } },
      lateJobs: { watch: () => {} },
      pace: { ...DEFAULT_PACE, searchMs: { first: 1, last: 1 } },
      log: silentLogger(),
      now: () => 0,
    });
    onTestFinished(() => reconciler.close());
    reconciler.take({ prompt, plan, told, isKeyUsed: false });
  });
  return { fate, sent };
}

test('an accepted one without a job is sent again, until it has one', async () => {
  const sends = [new Error('the disk is full'), CROWDED, ACCEPTED];
  expect(await fateOf('accepted', { looks: ['none'], sends })).toEqual({ fate: 'has j', sent: 3 });
});

test('an accepted one is looked for again when the ledger could not be read', async () => {
  const looks = [new Error('the ledger is away'), 'blind' as const, job];
  expect(await fateOf('accepted', { looks, sends: [CROWDED] })).toEqual({ fate: 'has j', sent: 1 });
});

test('an accepted one whose key was used, and that has no job for certain, is sent under another', async () => {
  expect(await fateOf('accepted', { looks: ['none'], sends: [KEY_USED, ACCEPTED] })).toEqual({
    fate: 'has j',
    sent: 2,
  });
});

test('one whose keys leave no job again and again is lost', async () => {
  expect(await fateOf('accepted', { looks: ['none'], sends: [KEY_USED] })).toEqual({
    fate: 'lost',
    sent: 4,
  });
});

test.each([
  ['unknown', 'lost'],
  ['unheard', 'forgotten'],
] as const)('one whose client was told %s is not sent by itself', async (told, fate) => {
  expect(await fateOf(told, { looks: ['none'], sends: [ACCEPTED] })).toEqual({ fate, sent: 0 });
});
