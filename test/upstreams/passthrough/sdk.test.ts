// Two real servers: one runs jobs and models, clients of its APIs know only the one in front of it.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../../support/processes/holdover.ts';
import { getJson } from '../../support/clients/v1-client.ts';
import { growing } from '../../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });

const scriptOf = (name: string) =>
  fileURLToPath(new URL(`../../support/scripts/${name}`, import.meta.url));
const PICTURE = fileURLToPath(new URL('../../../fixtures/demo/evening-hills.jpg', import.meta.url));

/** The SDK needs Node 22; `.ci/run` brings one for machines whose own is older. */
const NODE =
  Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : process.env.HOLDOVER_TEST_NODE;
const isMissing = NODE === undefined || !existsSync(NODE);

let engine: Holdover;
let holdover: Holdover;

beforeAll(async () => {
  engine = await startHoldover({ upstream: 'embedded' });
  holdover = await startHoldover({ upstream: 'embedded', args: ['--upstream', engine.url] });
});
afterAll(async () => {
  await holdover.dispose();
  await engine.dispose();
});

async function drive(script: string, env: NodeJS.ProcessEnv, ...args: string[]): Promise<any> {
  const options = { env: { ...process.env, ...env }, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(NODE ?? '', [scriptOf(script), ...args], options);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

test('a job is submitted, streamed to its end, and its picture has the same bytes', async () => {
  const submitted = await fetch(`${holdover.url}/api/v2/jobs`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ workflow: growing({ seed: 11, steps: 4 }) }),
  });
  expect(submitted.status).toBe(201);
  const job: any = await submitted.json();
  const stream = await (await fetch(holdover.url + job.urls.events)).text();
  expect(stream).toMatch(/event: progress/);
  expect(stream.trimEnd().split('\n').at(-1)).toContain('"succeeded"');
  const [here, there] = [holdover.url, engine.url].map(async (url) => {
    const { outputs } = await getJson(`${url}/api/v2/jobs/${job.id}`);
    const picture = await fetch(`${url}/api/v2/assets/${outputs[0].id}/content`);
    return Buffer.from(await picture.arrayBuffer()).toString('base64');
  });
  expect(await here).toBe(await there);
  expect((await here)?.length).toBeGreaterThan(1000);
});

describe.skipIf(isMissing)(
  'the official TypeScript SDK works unchanged (needs Node >= 22, or HOLDOVER_TEST_NODE)',
  () => {
    test('with jobs and assets', async () => {
      const seen = await drive('sdk-session.mjs', { COMFY_BASE_URL: holdover.url }, PICTURE);
      expect(seen.run).toMatchObject({ status: 'succeeded', name: 'loaded_00001_.png' });
      expect(seen.run.bytes).toBeGreaterThan(1000);
      expect(seen.events.status).toBe('succeeded');
      expect(Object.keys(seen.events.kinds)).toEqual(
        expect.arrayContaining(['progress', 'preview', 'outputReady']),
      );
      expect(seen.cancel).toBe('canceled');
      expect(seen.refused).toBe('InvalidWorkflow');
      expect(seen.failed.name).toBe('JobFailed');
    });

    test('with models', async () => {
      const env = { COMFY_ROUTER_BASE_URL: holdover.url, COMFY_API_KEY: 'key-of-the-sdk' };
      const [here, there] = [
        await drive('sdk-models.mjs', env),
        await drive('sdk-models.mjs', {
          COMFY_ROUTER_BASE_URL: engine.url,
          COMFY_API_KEY: 'another-key',
        }),
      ];
      expect(here).toEqual(there);
      expect(here.replay).toEqual({ same: true, width: 32 });
    });
  },
);
