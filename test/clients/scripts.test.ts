import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  NOT_A_PICTURE,
  interrupt,
  formatOf,
  pngText,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type ScriptRun, hasPython, runScript } from '../support/clients/run-script.ts';
import { endless, growing, loading, streaming } from '../support/graphs/workflows.ts';

// Programs of our own in the two styles people copy from documentation, each in a process of its own.

const KEY = 'hosted-user-key';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover();

beforeAll(async () => {
  await uploadInput(holdover.url, { bytes: NOT_A_PICTURE, name: 'corrupt.png' });
  await uploadInput(
    holdover.url,
    { bytes: NOT_A_PICTURE, name: 'corrupt.png' },
    { 'X-API-Key': KEY },
  );
});

const hosted = (graph: object | string, ...after: string[]): Promise<ScriptRun> =>
  runScript('hosted-style.mjs', graph, { before: [holdover.url, KEY], after });
const local = (script: string, graph: object | string): Promise<ScriptRun> =>
  runScript(script, graph, { before: [`127.0.0.1:${holdover.port}`] });

describe('hosted style: submit, then connect with a random client id', () => {
  test.each([
    { style: 'listening', flags: [] },
    { style: 'connecting only when everything is over', flags: ['--wait-before-connecting'] },
    { style: 'polling', flags: ['--poll'] },
  ])('$style: a workflow with previews ends with its file', async ({ style, flags }) => {
    const prefix = `hosted-${style.slice(0, 4)}`;
    const graph = growing({ prefix, seed: style.length });
    const run = await hosted(graph, ...flags);
    expect(run.stderr).toBe('');
    expect(run.told.outputs).toMatchObject({
      '9': { images: [{ filename: `${prefix}_00001_.png`, subfolder: '', type: 'output' }] },
    });
    expect(await Promise.all(run.files.map(formatOf))).toEqual(['png 64x64']);
    if (style !== 'polling') {
      // The whole run is received although no socket was open at its start.
      expect(run.told.nodes.slice(0, 2)).toEqual(['1', '9']);
      expect(run.told.progress).toBeGreaterThan(0);
    }
    if (style.startsWith('connecting')) return;
    const cached = await hosted(graph, ...flags);
    expect(cached.told.outputs).toEqual(run.told.outputs);
    expect(cached.files[0]!.equals(run.files[0]!)).toBe(true);
  });

  test.each([
    [[], /cannot identify image file/],
    [['--poll'], /ended as (error|non_retryable_error)/],
  ])('a failing workflow ends with the reason %j', async (flags, reason) => {
    const run = await hosted(loading('corrupt.png'), ...flags);
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(reason);
  });

  test('a refused workflow ends with the reason', async () => {
    const run = await hosted({ '1': { class_type: 'KSampler', inputs: {} } });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/submit: 400 .*KSampler/s);
  });

  test('polling ends as cancelled when the workflow is interrupted', async () => {
    const running = hosted(endless(), '--poll');
    await untilRunning(holdover.url, { 'X-API-Key': KEY });
    await interrupt(holdover.url, { 'X-API-Key': KEY });
    expect(await running).toMatchObject({ code: 1, stderr: 'ended as cancelled\n' });
  });
});

describe.each([
  { script: 'local-style.mjs', needs: 'node', runs: true },
  { script: 'local_style.py', needs: 'python3', runs: hasPython() },
])(
  'local style, $script with $needs: connect, then submit under its own id',
  ({ script, runs }) => {
    beforeEach(({ skip }) => skip(!runs, 'there is no python3 on this machine'));

    test('a workflow with previews ends with its file, and a cached rerun with the same', async () => {
      const text = JSON.stringify(growing({ prefix: script, seed: 70 }));
      const graph = text.replace('"seed":70', '"seed":18446744073709551615');
      const run = await local(script, graph);
      expect(run.stderr).toBe('');
      expect(run.told.outputs['9'].images).toMatchObject([
        { filename: `${script}_00001_.png`, subfolder: '', type: 'output' },
      ]);
      expect(await Promise.all(run.files.map(formatOf))).toEqual(['png 64x64']);
      // The largest seed reaches the picture’s own record to the digit.
      expect(pngText(run.files[0]!, 'prompt')).toContain('"seed": 18446744073709551615');
      const cached = await local(script, graph);
      expect(cached.told.outputs).toEqual(run.told.outputs);
      expect(cached.files[0]!.equals(run.files[0]!)).toBe(true);
    });

    test('a failing workflow ends without files, and its history says why', async () => {
      const { told } = await local(script, loading('corrupt.png'));
      expect(told.saved).toEqual([]);
      expect(told.status.status_str).toBe('error');
      expect(told.status.messages.at(-1)).toMatchObject([
        'execution_error',
        { prompt_id: told.promptId },
      ]);
    });

    test('an interrupted workflow ends without files, and its history says so', async () => {
      const running = local(script, endless());
      const id = await untilRunning(holdover.url);
      await interrupt(holdover.url);
      const { told } = await running;
      expect(told.promptId).toBe(id);
      expect(told.saved).toEqual([]);
      expect(told.status.messages.at(-1)[0]).toBe('execution_interrupted');
    });
  },
);

describe('socket images: bytes while save_image_websocket_node executes', () => {
  test('a run and its cached rerun deliver one PNG after eight bytes', async () => {
    // Previews of an earlier node are not taken for results.
    const { '1': grower } = growing({ seed: 80 });
    for (const _run of ['first', 'cached']) {
      const run = await local('socket-images.mjs', { ...streaming(), '1': grower });
      expect(run.stderr).toBe('');
      expect(await Promise.all(run.files.map(formatOf))).toEqual(['png 64x64']);
    }
  });

  test.each([
    ['failing', async () => {}, { ...loading('corrupt.png') }],
    [
      'interrupted',
      async () => void (await untilRunning(holdover.url).then(() => interrupt(holdover.url))),
      endless(),
    ],
  ])('a run that is %s ends without pictures', async (_how, act, graph) => {
    const running = local('socket-images.mjs', graph);
    await act();
    expect((await running).told.saved).toEqual([]);
  });
});
