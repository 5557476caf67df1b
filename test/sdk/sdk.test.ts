import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/holdover.ts';

const SCRIPT = fileURLToPath(new URL('../support/scripts/sdk-session.mjs', import.meta.url));
const PICTURE = fileURLToPath(new URL('../../fixtures/demo/evening-hills.jpg', import.meta.url));

/** The SDK needs Node 22; `.ci/run` brings one for machines whose own is older. */
const NODE =
  Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : process.env.HOLDOVER_TEST_NODE;
const isMissing = NODE === undefined || !existsSync(NODE);

describe.skipIf(isMissing)(
  'the official TypeScript SDK drives the embedded v2 engine (needs Node >= 22, or HOLDOVER_TEST_NODE)',
  () => {
    let holdover: Holdover;
    let seen: any;

    beforeAll(async () => {
      holdover = await startHoldover();
      const env = { ...process.env, COMFY_BASE_URL: holdover.url };
      const { stdout } = await promisify(execFile)(NODE ?? '', [SCRIPT, PICTURE], {
        env,
        timeout: 60_000,
      });
      seen = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    }, 90_000);
    afterAll(() => holdover?.dispose());

    test('uploads an input, runs a workflow and downloads its output', () => {
      expect(seen.run).toMatchObject({ status: 'succeeded', name: 'loaded_00001_.png' });
      expect(seen.run.bytes).toBeGreaterThan(1000);
    });

    test('streams progress, previews and outputs until the end', () => {
      expect(seen.events.status).toBe('succeeded');
      expect(Object.keys(seen.events.kinds)).toEqual(
        expect.arrayContaining(['progress', 'preview', 'outputReady']),
      );
    });

    test('cancels a job', () => {
      expect(seen.cancel).toBe('canceled');
    });

    test('sees a refused workflow and a failed job as its own typed errors', () => {
      expect(seen.refused).toBe('InvalidWorkflow');
      expect(seen.failed.name).toBe('JobFailed');
    });
  },
);
