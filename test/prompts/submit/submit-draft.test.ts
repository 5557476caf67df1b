// A checked prompt is recorded before it is sent, and answered by what became of it.
import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import type { LivePrompt } from '../../../src/prompts/live-prompts.ts';
import { LeadershipLost } from '../../../src/prompts/prompt-event-log.ts';
import type { SubmissionDraft } from '../../../src/prompts/submit/draft.ts';
import { DEFAULT_RETRY_POLICY } from '../../../src/prompts/submit/retry-policy.ts';
import type { SendResult } from '../../../src/prompts/submit/send.ts';
import {
  DraftSubmitter,
  type DraftSubmitterOptions,
} from '../../../src/prompts/submit/submit-draft.ts';

const error = { status: 429, code: 'queue_full', message: '', details: null };
const plan = {
  promptKey: 'k',
  idempotencyKey: 'k',
  graph: {},
  outputs: [],
  placed: [],
  secrets: {},
  extraData: {},
};
const draft = {
  caller: { user: 'ann' },
  submission: { graph: {}, promptId: undefined, number: 4, clientId: 'c' },
  plan,
  graphJson: '{}',
  extraDataJson: '{}',
  createdAtMs: 1,
} as unknown as SubmissionDraft;

type Given = {
  readonly isBusy?: boolean;
  readonly isFull?: boolean;
  /** Another process took the prompt over, before it was recorded or after it was sent. */
  readonly isLost?: 'before' | 'after';
  /** Of the ledger of the process that took it over. */
  readonly takenAs?: string;
  /** The job cannot be linked. */
  readonly isLogFull?: boolean;
};

async function submitted(result: object | Error, given: Given = {}) {
  const events: string[] = [];
  const lost = async () => {
    throw new LeadershipLost();
  };
  const submitter = new DraftSubmitter({
    ledger: {
      prompts: {
        insert: async ({ state }: { state: string }) => void events.push(`insert ${state}`),
        get: async () => given.takenAs && { promptId: given.takenAs },
        remove: given.isLost === 'after' ? lost : async () => void events.push('remove'),
        setPlan: async () => void events.push('store plan'),
        setState: async (_: string, state: string) => void events.push(`state ${state}`),
      },
    },
    promptEventLog: {
      claim: given.isLost === 'before' ? lost : async () => void events.push('claim'),
      discard: async () => void events.push('discard'),
      isLeader: () => given.isLost !== 'after',
      stopLeading: () => void events.push('stop leading'),
    },
    follower: {
      trackPrompt: (prompt: LivePrompt) => {
        events.push(`track ${prompt.promptId}`);
        return prompt;
      },
      untrack: () => void events.push('untrack'),
      releaseFrames: () => void events.push('release'),
    },
    sender: {
      async sendRecorded() {
        events.push('send');
        if (result instanceof Error) throw result;
        return { plan, ...result } as unknown as SendResult;
      },
    },
    linkJob: async (prompt: LivePrompt) => {
      if (given.isLogFull) throw new Error('OOM');
      events.push(`link ${prompt.promptId}`);
    },
    outbox: {
      hasWaiting: () => given.isBusy ?? false,
      reserve: () => (given.isFull ? undefined : { release() {} }),
      add: async (_: unknown, waitMs: number) => void events.push(`outbox, wait ${waitMs}`),
    },
    submissionRecovery: { recover: () => void events.push('recover') },
    retryPolicy: DEFAULT_RETRY_POLICY,
    objectInfo: async () => ({}),
    mayAcceptPartially: false,
    durability: 'fsync',
    jobs: { cancel: async (_: unknown, id: string) => void events.push(`cancel ${id}`) },
    log: silentLogger(),
  } as unknown as DraftSubmitterOptions);
  const answer = await submitter.submit(draft).then(
    ({ promptId }) => promptId,
    ({ status, message }: { status?: number; message: string }) => status ?? message,
  );
  return { answer, events };
}

const ACCEPTED = { kind: 'accepted', job: { id: 'j1' }, nodeErrors: {} };

test.each<[string, object | Error, Given, string | number, string[]]>([
  [
    'accepted: it has the id of its job',
    ACCEPTED,
    {},
    'j1',
    ['claim', 'insert submitting', 'send', 'track j1', 'link j1'],
  ],
  [
    'accepted with an id that no path can hold: it keeps its own',
    { ...ACCEPTED, job: { id: 'a/b' } },
    {},
    'k',
    ['claim', 'insert submitting', 'send', 'track k', 'link k'],
  ],
  [
    'accepted that cannot be linked: a process that takes it over follows its job',
    ACCEPTED,
    { isLogFull: true },
    'OOM',
    ['claim', 'insert submitting', 'send', 'track j1', 'stop leading'],
  ],
  [
    'refused: nothing of it is left',
    { kind: 'refused', error, refusal: { status: 400, body: { error: {}, node_errors: {} } } },
    {},
    400,
    ['claim', 'insert submitting', 'send', 'remove', 'discard'],
  ],
  [
    'not sent: the client is told to try again',
    { kind: 'unsent', error },
    {},
    502,
    ['claim', 'insert submitting', 'send', 'remove', 'discard'],
  ],
  [
    'refused for lack of capacity: it waits in the outbox',
    { kind: 'no capacity', error: { ...error, retryAfterSeconds: 3 } },
    {},
    'k',
    [
      'claim',
      'insert submitting',
      'send',
      'store plan',
      'state outbox',
      'track k',
      'outbox, wait 3000',
    ],
  ],
  [
    'refused for lack of capacity with a full outbox: it is refused',
    { kind: 'no capacity', error },
    { isFull: true },
    503,
    ['claim', 'insert submitting', 'send', 'remove', 'discard'],
  ],
  [
    'behind others of its user: it is not sent at all',
    ACCEPTED,
    { isBusy: true },
    'k',
    ['claim', 'insert outbox', 'track k', 'outbox, wait 0'],
  ],
  [
    'of unknown outcome: its job is searched for',
    { kind: 'unknown', error, mayResend: true },
    {},
    500,
    ['claim', 'insert submitting', 'send', 'state unknown', 'track k', 'release', 'recover'],
  ],
  [
    'that Holdover failed to send: its job is searched for',
    new Error('broken'),
    {},
    500,
    ['claim', 'insert submitting', 'send', 'state unknown', 'track k', 'release', 'recover'],
  ],
  [
    'taken over before it was recorded: the client may try again',
    ACCEPTED,
    { isLost: 'before' },
    503,
    [],
  ],
  [
    'taken over after it was sent: the client gets the id the ledger has',
    ACCEPTED,
    { isLost: 'after', takenAs: 'theirs' },
    'theirs',
    ['claim', 'insert submitting', 'send', 'untrack', 'track theirs'],
  ],
])('a prompt %s', async (_, result, given, answer, events) => {
  expect(await submitted(result, given)).toEqual({ answer, events });
});
