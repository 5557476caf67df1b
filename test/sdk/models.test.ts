import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/holdover.ts';

const SCRIPT = fileURLToPath(new URL('../support/scripts/sdk-models.mjs', import.meta.url));

/** The SDK needs Node 22; `.ci/run` brings one for machines whose own is older. */
const NODE =
  Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : process.env.HOLDOVER_TEST_NODE;
const isMissing = NODE === undefined || !existsSync(NODE);

describe.skipIf(isMissing)(
  'the official TypeScript SDK drives the embedded model router (needs Node >= 22, or HOLDOVER_TEST_NODE)',
  () => {
    let holdover: Holdover;
    let seen: any;

    beforeAll(async () => {
      holdover = await startHoldover();
      const env = {
        ...process.env,
        COMFY_ROUTER_BASE_URL: holdover.url,
        COMFY_API_KEY: 'comfyui-k',
      };
      const { stdout } = await promisify(execFile)(NODE ?? '', [SCRIPT], { env, timeout: 60_000 });
      seen = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    }, 90_000);
    afterAll(() => holdover?.dispose());

    test('runs a model and gets its native answer with a request id', () => {
      expect(seen.run.data.size_bytes).toBe(1);
      expect(seen.run.requestId).toBe('string');
    });

    test('gets the same answer under the same key, and a conflict for another body', () => {
      expect(seen.replay).toEqual({ same: true, width: 32 });
      expect(seen.conflict).toMatchObject({ httpStatus: 409, code: 'invalid_input' });
    });

    test.each([
      ['notFound', 404, 'model_not_found'],
      ['invalid', 422, 'invalid_input'],
      ['refused', 400, 'content_policy_violation'],
      ['failed', 502, 'provider_error'],
    ])('sees %s as its own typed error, with the request id', (name, httpStatus, code) => {
      expect(seen[name]).toMatchObject({ httpStatus, code, hasRequestId: true });
    });

    test('an unknown model is its NotFound, an invalid field is told by its place', () => {
      expect(seen.notFound.name).toBe('NotFound');
      expect(
        seen.invalid.details.detail.map(({ loc }: { loc: string[] }) => loc.join('.')),
      ).toEqual(['body.image', 'body.sigma']);
    });

    test('an abort by the caller stays an abort', () => {
      expect(seen.aborted.name).toBe('DOMException');
    });
  },
);
