import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readPngChunks } from '../../src/nodes/codecs/png-chunks.ts';
import { CODE_FILES, LANGUAGES } from '../../src/migration/session-code.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type Runners, openRunners } from '../support/clients/v2-code.ts';
import { growing } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// Legacy scripts are traced, and what was written down is run against the same upstream.

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

const SCRIPTS = new URL('../support/scripts/', import.meta.url);
const PICTURE = fileURLToPath(new URL('../../fixtures/demo/evening-hills.jpg', import.meta.url));
const KEY = 'key-of-the-traced-one';

const runnable = await openRunners({ cwd: tmpdir(), env: {} });
for (const [language, runner] of Object.entries(runnable)) {
  if (!runner.ok) console.warn(`generated ${language} does not run here: ${runner.why}`);
}
const notRun = (language: keyof Runners): string => {
  const runner = runnable[language];
  return runner.ok ? '' : ` (NOT RUN: ${runner.why})`;
};

/** A program, its arguments, and the v1 calls it makes. */
type Traced = {
  readonly script: string;
  readonly upstream: 'embedded' | 'remote';
  readonly input: 'workflow' | 'picture';
  readonly calls: readonly string[];
};

const LISTENING = ['POST /prompt', 'GET /history', 'GET /view'];
const EDITING = ['POST /upload/image', ...LISTENING, ...LISTENING];

/**
 * All bytes but one number: a picture records the workflow it was made by, and of a workflow that
 * works on an earlier output its name, which is the next one in each run.
 */
function contentOf(png: Buffer): readonly unknown[] {
  const chunks = readPngChunks(png).map(({ type, data }) => ({ type, data: Buffer.from(data) }));
  return chunks.map(({ type, data }) => {
    const text = data.toString('latin1').replace(/_\d{5}_(?=\.png \[output\])/, '_#####_');
    return [type, type === 'tEXt' ? text : createHash('sha256').update(data).digest('hex')];
  });
}

describe.each<Traced>([
  { script: 'local_style.py', upstream: 'embedded', input: 'workflow', calls: LISTENING },
  { script: 'local-style.mjs', upstream: 'remote', input: 'workflow', calls: LISTENING },
  { script: 'edit_picture.py', upstream: 'remote', input: 'picture', calls: EDITING },
])('$script, traced on an $upstream upstream', ({ script, upstream, input, calls }) => {
  let dir: string;
  let holdover: Holdover;
  let traced: Awaited<ReturnType<typeof runHoldover>>;
  let runners: Runners;

  const program = script.endsWith('.py') ? 'python3' : process.execPath;
  const command = () => {
    const file = input === 'picture' ? PICTURE : join(dir, 'workflow.json');
    return [
      '--',
      program,
      fileURLToPath(new URL(script, SCRIPTS)),
      '{server}',
      file,
      join(dir, 'v1'),
    ];
  };

  beforeAll(async () => {
    dir = await runFolder('traced');
    await mkdir(join(dir, 'v1'));
    const graph = JSON.stringify(growing({ seed: 72, prefix: 'traced' }));
    await writeFile(join(dir, 'workflow.json'), graph.replace('72', '18446744073709551615'));
    const out = ['--out', join(dir, 'code')];
    // The code runs against the upstream of the traced jobs: the service, or an engine on the same data.
    if (upstream === 'remote') {
      holdover = await startHoldover({ upstream: 'embedded', args: ['--local-token', KEY] });
      const args = ['trace', ...out, '--upstream', holdover.url, ...command()];
      traced = await runHoldover(args, { HOLDOVER_UPSTREAM_KEY: KEY });
    } else {
      const dataDir = join(dir, 'data');
      traced = await runHoldover(['trace', ...out, '--data-dir', dataDir, ...command()]);
      holdover = await startHoldover({ upstream: 'embedded', dataDir });
    }
    // On a remote upstream the code knows the address by itself.
    const env = upstream === 'remote' ? { COMFY_API_KEY: KEY } : { COMFY_BASE_URL: holdover.url };
    runners = await openRunners({ cwd: join(dir, 'code'), env });
  });
  afterAll(() => holdover?.dispose());

  test('the script ran as ever', async () => {
    expect([traced.code, traced.stderr]).toEqual([0, expect.stringContaining('POST /api/v2/jobs')]);
    expect(await readdir(join(dir, 'v1'))).not.toEqual([]);
  });

  test('its calls are written down, exactly', async () => {
    const listed = JSON.parse(await readFile(join(dir, 'code/calls.json'), 'utf8'));
    const made = listed.map(
      ({ method, target }: any) => `${method} ${target.replace(/(history).*|\?.*/, '$1')}`,
    );
    // How often it asks for a history is a matter of luck.
    expect(made.filter((call: string, at: number) => call !== made[at - 1])).toEqual(calls);
  });

  test.each(LANGUAGES.map((language) => ({ language, why: notRun(language) })))(
    'the $language it became makes the same files byte by byte$why',
    async ({ language, why }) => {
      if (why !== '') return;
      const out = join(dir, language);
      const runner = runners[language];
      const ran = runner.ok && (await runner.run(CODE_FILES[language], [out]));
      expect(ran).toMatchObject({ code: 0, err: '' });
      const names = await readdir(join(dir, 'v1'));
      expect(await readdir(out)).toEqual(names);
      for (const name of names) {
        const [made, had] = await Promise.all(
          [out, join(dir, 'v1')].map((at) => readFile(join(at, name))),
        );
        expect(contentOf(made!), name).toEqual(contentOf(had!));
      }
    },
  );

  test('no key is in anything that was written', async () => {
    const names = await readdir(join(dir, 'code'), { recursive: true, withFileTypes: true });
    const files = names.filter(
      (entry) => entry.isFile() && !entry.parentPath.includes('node_modules'),
    );
    const texts = await Promise.all(
      files.map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1')),
    );
    expect(files.length).toBeGreaterThan(3);
    expect([...texts, traced.stderr].filter((text) => text.includes(KEY))).toEqual([]);
  });
});
