// The official Python SDK, unchanged, its sync and its async client: all of its public surface.
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { installPackages } from '../support/clients/python-packages.ts';
import { MUST_RUN, type Seen, runSession, unused } from './sdk-run.ts';

const SESSION = fileURLToPath(new URL('python/session.py', import.meta.url));
const REQUIREMENTS = fileURLToPath(new URL('../trace/requirements.txt', import.meta.url));

const installed = await installPackages('v2-sdk', REQUIREMENTS);

const NO_QUEUE =
  'the router has no queued requests (spec 2: "Not offered"): nothing is answered with it';
const NO_CASE = 'no program brings a healthy server to it';

/** Public members that no session can use, and why. */
const NOT_USED: { readonly [name: string]: string } = {
  AlreadyCompleted: NO_QUEUE,
  CancelRefused: NO_QUEUE,
  Cancelled: NO_QUEUE,
  QueueBacklogFull: NO_QUEUE,
  QueueTimeout: NO_QUEUE,
  RequestNotFound: NO_QUEUE,
  'QueueUpdate.__init__': NO_QUEUE,
  'QueueUpdate.__init__(error_type)': NO_QUEUE,
  'QueueUpdate.__init__(queue_position)': NO_QUEUE,
  'QueueUpdate.__init__(raw)': NO_QUEUE,
  'QueueUpdate.__init__(request_id)': NO_QUEUE,
  'QueueUpdate.__init__(retry_after)': NO_QUEUE,
  'QueueUpdate.__init__(status)': NO_QUEUE,
  'QueueUpdate.is_completed': NO_QUEUE,
  BlobNotFound: 'a file would have to be removed between two calls of one upload',
  ClientDisconnected: 'a client that is gone gets no answer',
  DeadlineExceeded: NO_CASE,
  InternalError: NO_CASE,
  ServiceUnavailable: NO_CASE,
  RouterError: 'the base of the others, for error types an SDK does not know',
  'RouterRunResult.__init__(credits_used)': 'the router tells no costs (spec 2: "Not offered")',
  'Log.__init__': 'the contract lets a service send log events; Holdover sends none',
  'Log.__init__(level)': 'see Log',
  'Log.__init__(message)': 'see Log',
  'Preview.to_pil': 'needs Pillow; works on the bytes that are there already',
  'RetryPolicy.backoff(rng)': 'for tests of the SDK',
};

describe.skipIf(!installed.ok && !MUST_RUN)(
  `the official Python SDK${installed.ok ? '' : ` (NOT RUN: ${installed.why})`}`,
  () => {
    let seen: Seen;

    beforeAll(async () => {
      if (!installed.ok) throw new Error(installed.why);
      const env = { PYTHONPATH: installed.packages };
      seen = await runSession(['python3', SESSION], env);
    }, 240_000);

    test('uses all of its public surface, but for what has a reason', () => {
      expect(seen.surface.length).toBeGreaterThan(250);
      expect(unused(seen).sort()).toEqual(Object.keys(NOT_USED).sort());
    });

    describe.each(['sync', 'async'])('%s', (form) => {
      const part = (name: string) => seen[form][name];

      test('uploads by path, bytes, stream and URL, by hash what is there, and deletes', () => {
        expect(part('assets')).toEqual({
          created: true,
          createdAgain: false,
          sameHash: true,
          reference: [true, 't.txt'],
          job: null,
          expires: false,
          path: `${form}.jpg`,
          link: true,
          mismatch: expect.objectContaining({ name: 'HashMismatch', code: 'hash_mismatch' }),
          deleted: { name: 'NotFound', code: 'not_found', http_status: 404 },
        });
      });

      test('runs a workflow and downloads whole outputs, ranges and links', () => {
        expect(part('jobs')).toEqual({
          status: 'succeeded',
          error: null,
          output: [expect.stringMatching(/^loaded_\d{5}_\.png$/), '13', 'image', 'image/png', true],
          isWhole: [true, 1],
          ranges: [3, true, true, true],
          link: true,
          madeBy: true,
          workflow: ['api', ['10', '13']],
        });
      });

      test('streams events, and finds its jobs again by their labels', () => {
        expect(part('labels')).toEqual({
          kinds: ['OutputReady', 'Preview', 'Progress', 'StatusChange'],
          steps: true,
          preview: 'image/jpeg',
          outputs: [true],
          last: ['StatusChange', 'succeeded'],
          metadata: { run: form, by: 'sdk' },
          listed: [[true, 'succeeded', { run: form, by: 'sdk' }]],
          times: true,
          reused: {
            name: 'IdempotencyKeyReuse',
            code: 'idempotency_key_reuse',
            http_status: 422,
          },
          tooMany: { name: 'ComfyError', code: 'metadata_invalid', http_status: 422 },
        });
      });

      test('sees each refusal as its own class', () => {
        expect(part('refusals')).toEqual({
          invalid: { name: 'InvalidWorkflow', code: 'invalid_workflow', http_status: 422 },
          missing: { name: 'MissingAsset', code: 'missing_asset', http_status: 422 },
          ui: { name: 'WorkflowFormatUi', code: 'workflow_format_ui', http_status: 422 },
          unknownJob: { name: 'NotFound', code: 'not_found', http_status: 404 },
          failed: expect.objectContaining({ name: 'JobFailed' }),
        });
      });

      test('cancels what waits and what runs, and submits again while the queue is full', () => {
        expect(part('cancelling')).toEqual({
          states: ['queued', 'canceled', 'canceled'],
          position: ['queued', 0],
          last: ['StatusChange', 'canceled'],
          late: 'TimeoutError',
          result: 'JobFailed',
          third: [true, 'succeeded'],
        });
      });

      test('runs models, reads their catalog page by page, and their schemas', () => {
        expect(part('models')).toMatchObject({
          run: [false, true, true],
          binary: ['image/png', true, true],
          page: [2, true, 2, true],
          all: true,
          model: ['local', true],
          schema: ['3.1.0', false, true, null],
          conflict: { name: 'InvalidInput', http_status: 409 },
          unknown: { name: 'ModelNotFound', http_status: 404 },
          invalid: { name: 'InvalidInput', places: ['body.image', 'body.width'] },
          refused: { name: 'ContentPolicyViolation' },
          failed: { name: 'ProviderError' },
          late: { name: 'ProviderTimeout' },
          chosen: { name: 'none' },
          chosenDetailed: { name: 'none' },
        });
        const { handle, ...queued } = part('models').queued;
        expect(handle).toEqual(['local/delay', 'none']);
        expect(new Set(Object.values(queued))).toEqual(new Set(['ModelNotFound']));
      });

      test('sees each refused key as its own class, and retries when it is told to', () => {
        expect(part('keys')).toEqual({
          unknown: ['Unauthorized'],
          forbidden: ['Forbidden'],
          disabled: ['NotEnabled'],
          poor: ['InsufficientCredits'],
          // Both clients have this key, and one call a minute.
          rare: form === 'sync' ? ['RateLimited', 'none'] : ['RateLimited', 'RateLimited'],
          alone: ['ConcurrencyLimitExceeded', 'none'],
          none: 'MissingApiKey',
        });
        expect(part('retry')).toEqual([true, 30, true, 'ProviderError']);
      });
    });
  },
);
