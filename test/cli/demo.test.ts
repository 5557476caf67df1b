import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { formatOf } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { runHoldover } from '../support/processes/holdover.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

// `npm run demo -- ARGS`, as built.

const DEMO = fileURLToPath(new URL('../../dist/demo.js', import.meta.url));
const KEY = 'key-of-the-demo';

vi.setConfig({ testTimeout: 60_000 });

type Ran = { readonly code: number; readonly out: string; readonly err: string };

function demo(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const options = { env: { ...process.env, ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, [DEMO, ...args], options, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err }),
    );
  });
}

const pathOf = (out: string, file: RegExp): string =>
  out
    .split('\n')
    .find((line) => line.startsWith('Saved ') && file.test(line))
    ?.slice(6) ?? '';

describe('the demo', () => {
  const service = useHoldover({ args: ['--local-token', KEY] });

  test('on another Holdover that wants a key runs its job, leaves the pictures, and is no client of its ledger', async () => {
    const env = { HOLDOVER_UPSTREAM_KEY: KEY };
    const dataDir = await tempFolder('demo-data');
    const flags = ['--upstream', service.url, '--data-dir', dataDir];
    const { code, out, err } = await demo(flags, env);
    expect([code, err]).toEqual([0, expect.not.stringContaining('Error')]);
    expect(out).toMatch(/░ \d+%  ReactionDiffusion\n[^]*█ 100%  done\n/);
    expect(out).toMatch(
      /POST \/prompt +200 → POST \/api\/v2\/jobs, GET \/api\/v2\/jobs\/\{id\}\/events/,
    );
    expect(await formatOf(await readFile(pathOf(out, /\.png$/)))).toBe('png 384x256');
    expect(await formatOf(await readFile(pathOf(out, /last-preview/)))).toMatch(/^jpeg /);
    expect(out + err).not.toContain(KEY);
    const report = await runHoldover(['report', '--json', '--data-dir', dataDir]);
    expect(JSON.parse(report.stdout)).toMatchObject({ clients: [] });
  });

  test('says why the upstream refused', async () => {
    const { code, err } = await demo(['--upstream', service.url]);
    expect([code, err]).toEqual([1, expect.stringContaining('The picture was refused with 401')]);
  });

  test('leaves no folder when its server does not start', async () => {
    const folder = await tempFolder('demo-test');
    const { code, err } = await demo(['--upstream', 'nonsense'], { TMPDIR: folder });
    expect([code, err]).toEqual([1, expect.stringContaining("option '--upstream' must be")]);
    expect((await readdir(folder)).filter((name) => name.startsWith('holdover-demo-'))).toEqual([]);
  });
});
