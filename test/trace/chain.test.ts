// A script that uploads what it has downloaded, whose prompt is refused, and that interrupts one that
// runs, is traced; the code it became is run against the same upstream.
import { mkdir, readFile, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { CODE_FILES, LANGUAGES } from '../../src/migration/session-code.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type Runners, openRunners } from '../support/clients/v2-code.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

const SCRIPT = fileURLToPath(new URL('../support/scripts/chain_by_upload.py', import.meta.url));
const PICTURE = fileURLToPath(new URL('../../fixtures/demo/evening-hills.jpg', import.meta.url));

const runnable = await openRunners({ cwd: tmpdir(), env: {} });
const notRun = (language: keyof Runners): string => {
  const runner = runnable[language];
  return runner.ok ? '' : ` (NOT RUN: ${runner.why})`;
};

describe('on a remote upstream', () => {
  let dir: string;
  let holdover: Holdover;
  let runners: Runners;
  const code = (name: string): Promise<string> => readFile(join(dir, 'code', name), 'utf8');
  const jobs = async (): Promise<readonly any[]> => {
    const answer = await fetch(`${holdover.url}/api/v2/jobs?limit=100`);
    return ((await answer.json()) as { jobs: readonly any[] }).jobs;
  };

  beforeAll(async () => {
    dir = await runFolder('chain');
    await mkdir(join(dir, 'v1'));
    holdover = await startHoldover({ upstream: 'embedded' });
    const where = ['--upstream', holdover.url];
    const command = ['--', 'python3', SCRIPT, '{server}', PICTURE, join(dir, 'v1')];
    const traced = await runHoldover(['trace', '--out', join(dir, 'code'), ...where, ...command]);
    expect([traced.code, traced.stdout]).toEqual([0, '400\n']);
    const env = { COMFY_BASE_URL: holdover.url };
    runners = await openRunners({ cwd: join(dir, 'code'), env });
  });
  afterAll(() => holdover?.dispose());

  test('only the file of the client itself is uploaded', async () => {
    expect(await readdir(join(dir, 'code/inputs'))).toEqual(['evening-hills.jpg']);
  });

  test.each(LANGUAGES.map((language) => ({ language, why: notRun(language) })))(
    'the $language it became chains its jobs, shows the refusal, and cancels what runs$why',
    async ({ language, why }) => {
      if (why !== '') return;
      const before = (await jobs()).length;
      const out = join(dir, language);
      const runner = runners[language];
      const ran = runner.ok && (await runner.run(CODE_FILES[language], [out]));
      expect(ran).toMatchObject({ code: 0, err: '' });
      const { out: told } = ran as { out: string };
      expect(told).toMatch(/^refused_1: [^]*?invalid_workflow/m);
      const pause = {
        python: /time\.sleep\(\d.*\)\n *job_3\./,
        typescript: /sleep\(\d+\);\nawait job_3\./,
      };
      expect(await code(CODE_FILES[language])).toMatch(pause[language]);
      expect(told).toMatch(/^job_3: canceled$/m);

      const [canceled, second, first] = (await jobs()).slice(0, (await jobs()).length - before);
      expect(canceled).toMatchObject({ status: 'canceled', started_at: expect.any(String) });
      const answer = await fetch(`${holdover.url}/api/v2/jobs/${second.id}/workflow`);
      const { workflow } = (await answer.json()) as { workflow: any };
      const [output] = (
        (await (await fetch(`${holdover.url}/api/v2/jobs/${first.id}`)).json()) as any
      ).outputs;
      expect(workflow['1'].inputs.image.info.id).toBe(output.id);

      const names = await readdir(join(dir, 'v1'));
      expect(names).toHaveLength(2);
      for (const name of names) {
        const pixelsIn = (folder: string) => sharp(join(folder, name)).raw().toBuffer();
        const [made, had] = [await pixelsIn(out), await pixelsIn(join(dir, 'v1'))];
        expect(made.equals(had), name).toBe(true);
      }
    },
  );
});
