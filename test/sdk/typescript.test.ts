// The official TypeScript SDK, unchanged: all of its public surface. Its options are held complete by
// the type check, and its members by the test below.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { MUST_RUN, type Seen, runSession, unused } from './sdk-run.ts';

const SESSION = fileURLToPath(new URL('typescript/session.mts', import.meta.url));

/** The SDK needs Node 22; `.ci/run` brings one for machines whose own is older. */
const NODE =
  Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : (process.env['HOLDOVER_TEST_NODE'] ?? '');

const NO_CASE = 'no program brings a healthy server to it';

/** Public members that no session can use, and why. */
const NOT_USED: { readonly [name: string]: string } = {
  BlobNotFound: 'a file would have to be removed between two calls of one upload',
  QueueFull: 'the SDK submits again for a minute before it says so; that it does is tested',
  'routerErrors.ClientDisconnected': 'a client that is gone gets no answer',
  'routerErrors.DeadlineExceeded': NO_CASE,
  'routerErrors.InternalError': NO_CASE,
  'routerErrors.ServiceUnavailable': NO_CASE,
  'routerErrors.RouterError': 'the base of the others, for error types an SDK does not know',
};

describe.skipIf(!existsSync(NODE) && !MUST_RUN)(
  'the official TypeScript SDK (needs Node >= 22, or HOLDOVER_TEST_NODE)',
  () => {
    let seen: Seen;

    beforeAll(async () => {
      const command = [NODE, '--disable-warning=ExperimentalWarning', SESSION] as const;
      seen = await runSession(command);
    }, 180_000);

    const part = (name: string) => seen[name];

    test('uses all of its public surface, but for what has a reason', () => {
      expect(seen.surface.length).toBeGreaterThan(70);
      expect(unused(seen)).toEqual(Object.keys(NOT_USED).sort());
      expect(seen['ownFetch']).toBe(true);
    });

    test('uploads by path, bytes, stream and URL, by hash what is there, and deletes', () => {
      expect(part('assets')).toEqual({
        created: [true, false],
        sameHash: true,
        reference: [true, 'named.txt'],
        got: ['typescript.jpg', null, null],
        sameByUrl: true,
        mismatch: expect.objectContaining({ name: 'HashMismatch', code: 'hash_mismatch' }),
        deleted: expect.objectContaining({ name: 'NotFound', httpStatus: 404 }),
      });
    });

    test('runs a workflow and downloads whole outputs, ranges and links', () => {
      expect(part('jobs')).toEqual({
        ended: ['succeeded', null, 1],
        output: [expect.stringMatching(/^loaded_\d{5}_\.png$/), '13', 'image', 'image/png'],
        madeBy: [true, true],
        isWhole: true,
        ranges: [true, true],
        link: true,
        workflow: ['api', ['10', '13']],
      });
    });

    test('streams events until the end', () => {
      expect(part('events')).toEqual({
        kinds: ['outputReady', 'preview', 'progress', 'statusChange'],
        steps: true,
        preview: 'image/jpeg',
        outputs: 1,
        last: 'succeeded',
        again: 'succeeded',
        reused: expect.objectContaining({ name: 'IdempotencyKeyReuse', httpStatus: 422 }),
      });
    });

    test('sees each refusal as its own class', () => {
      expect(part('refusals')).toMatchObject({
        invalid: { name: 'InvalidWorkflow', code: 'invalid_workflow', httpStatus: 422 },
        missing: { name: 'MissingAsset', code: 'missing_asset', httpStatus: 422 },
        ui: { name: 'WorkflowFormatUi', code: 'workflow_format_ui' },
        unknownJob: { name: 'NotFound', code: 'not_found', httpStatus: 404 },
        failed: { name: 'JobFailed' },
      });
    });

    test('cancels what waits and what runs, and submits again while the queue is full', () => {
      expect(part('cancelling')).toEqual({
        states: ['queued', 'canceled', 'canceled'],
        late: 'Error',
        result: 'JobFailed',
        third: [true, 'succeeded'],
      });
    });

    test('runs models, and tries again when it is told to', () => {
      expect(part('models')).toMatchObject({
        run: [true, true],
        where: [true, true],
        conflict: { code: 'invalid_input', httpStatus: 409, hasRequestId: true },
        unknown: { name: 'NotFound', code: 'model_not_found' },
        invalid: { code: 'invalid_input', places: ['body.image', 'body.width'] },
        refused: { code: 'content_policy_violation', httpStatus: 400 },
        failed: { code: 'provider_error', httpStatus: 502 },
        late: { code: 'provider_timeout', httpStatus: 504 },
        retried: ['ComfyError', true],
        aborted: 'TimeoutError',
      });
    });

    test('sees each refused key', () => {
      expect(part('keys')).toEqual({
        unknown: ['Unauthorized'],
        forbidden: ['Forbidden'],
        disabled: ['ComfyError'],
        poor: ['InsufficientCredits'],
        rare: ['ComfyError', 'none'],
        alone: ['ComfyError', 'none'],
        none: ['MissingCredentials'],
      });
    });

    test('makes its own classes of the answers of the router', () => {
      const classes = [
        'ConcurrencyLimitExceeded',
        'ContentPolicyViolation',
        'Forbidden',
        'InsufficientCredits',
        'InvalidInput',
        'ModelNotFound',
        'NotEnabled',
        'ProviderError',
        'ProviderTimeout',
        'RateLimited',
        'Unauthorized',
      ];
      expect(part('routerErrors')).toEqual([
        'none',
        ...classes.map((name) => `routerErrors.${name}`),
      ]);
    });
  },
);
