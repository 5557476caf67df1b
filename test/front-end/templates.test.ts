import { readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import sharp, { type Sharp } from 'sharp';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openDefinitions } from '../../src/definitions/open-definitions.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { openTemplates } from '../../src/pages/templates.ts';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type UiGraph, promptOf } from '../support/browser/ui-graph.ts';
import { type WebRoot, makeWebRoot } from '../support/browser/web-root.ts';

// The starter workflows, each run on the embedded engine. `npm run thumbnails` writes the thumbnails
// that the tests compare with what the runs make.

// Growing a pattern is work.
vi.setConfig({ testTimeout: 60_000 });

const FOLDER = new URL('../../fixtures/templates/', import.meta.url);
const WRITES = process.env['HOLDOVER_WRITE_THUMBNAILS'] === '1';
const WIDTH = 320;
const WAITING = { timeout: 50_000, interval: 100 };

type Listed = { readonly name: string; readonly title: string; readonly mediaSubtype: string };

const INDEXED = ['reaction_diffusion', 'image_filters', 'edit_upload', 'text_tools', 'animation'];
const OF_PACK = ['pattern_over_picture'];
/** Where front ends look for the workflow and its thumbnail. */
const ADDRESSES = [
  ...INDEXED.map((name) => ({
    name,
    workflow: `/templates/${name}.json`,
    thumbnail: `/templates/${name}-1.webp`,
  })),
  ...OF_PACK.map((name) => ({
    name: `holdover/${name}`,
    workflow: `/api/workflow_templates/holdover/${name}.json`,
    thumbnail: `/api/workflow_templates/holdover/${name}.jpg`,
  })),
];

let web: WebRoot;
let holdover: Holdover;
beforeAll(async () => {
  web = await makeWebRoot();
  const args = ['--front-end-root', web.root];
  // All that it runs is waited for.
  holdover = await startHoldover({ args, upstream: 'embedded', env: { NODE_OPTIONS: '' } });
});
afterAll(async () => {
  await holdover?.dispose();
  await web?.dispose();
});

const json = async (path: string, at = holdover): Promise<any> =>
  JSON.parse((await call(at.url, path)).text);
const namesIn = (index: readonly { templates: readonly Listed[] }[]): readonly string[] =>
  index.flatMap(({ templates }) => templates.map(({ name }) => name));

describe('a front end finds them', () => {
  test.each(['/templates/index.json', '/templates/index.zh.json', '/templates/index.zh-TW.json'])(
    'in %s',
    async (path) => {
      const answer = await call(holdover.url, path);
      expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'private, no-store']);
      expect(answer.headers['content-type']).toContain('application/json');
      expect(namesIn(JSON.parse(answer.text))).toEqual(INDEXED);
    },
  );

  test('in /workflow_templates, as examples of the pack that has a class of our own', async () => {
    expect(await json('/api/workflow_templates')).toEqual({ holdover: OF_PACK });
  });

  test.each(ADDRESSES)('$name with its thumbnail', async ({ workflow, thumbnail }) => {
    const graph = await call(holdover.url, workflow);
    expect([graph.status, graph.headers['content-type']]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    const picture = await call(holdover.url, thumbnail);
    expect(picture.status).toBe(200);
    expect(picture.headers['content-type']).toBe(
      thumbnail.endsWith('jpg') ? 'image/jpeg' : 'image/webp',
    );
    expect(picture.body.length).toBeLessThan(30 * 1024);
  });

  test('and nothing else: no list of what lies there, no way out', async () => {
    const paths = [
      '/templates/',
      '/templates/holdover',
      '/templates/nope.json',
      '/templates/../inputs/example.png',
      '/templates/%2e%2e/inputs/example.png',
      '/templates/..%2finputs/example.png',
      '/api/workflow_templates/holdover/nope.json',
      '/inputs/example.png',
      '/reaction_diffusion.json',
    ];
    const answers = await Promise.all(paths.map((path) => call(holdover.url, path)));
    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 404));
  });

  test('unless it brings templates of its own', async () => {
    await web.write('templates/index.json', '[{"own":true}]');
    await web.write('templates/animation.json', '{"own":true}');
    expect(await json('/templates/index.json')).toEqual([{ own: true }]);
    expect(await json('/templates/animation.json')).toEqual({ own: true });
  });
});

describe('no user is shown a workflow that cannot run', () => {
  test('in front of a service whose inputs lack the example', async () => {
    const args = ['--front-end-root', web.root, '--upstream', holdover.url];
    const front = await startHoldover({ args, upstream: 'embedded' });
    onTestFinished(() => front.dispose());
    expect(namesIn(await json('/templates/index.fr.json', front))).toEqual([
      'reaction_diffusion',
      'text_tools',
      'animation',
    ]);
    expect(await json('/workflow_templates', front)).toEqual({});
  });

  test.each([
    [{ kind: 'embedded' }, INDEXED],
    [{ kind: 'remote', url: 'http://no-classes.example', key: undefined }, []],
  ] as const)('where a service does not tell its classes (%j)', async (upstream, names) => {
    const embedded = await json('/object_info');
    const source = { kind: 'embedded' } as const;
    const log = silentLogger();
    const definitions = openDefinitions({ source, upstream, embedded, cacheDir: '', log });
    const templates = openTemplates({ definitions, hasExample: true });
    const index = (await templates.index({ user: 'local' })) as any;
    expect(namesIn(index)).toEqual(names);
  });
});

test('each file belongs to a workflow, and each is listed', () => {
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' });
  const expected = [
    'index.json',
    'holdover',
    ...INDEXED.flatMap((name) => [`${name}.json`, `${name}-1.webp`]),
    ...OF_PACK.flatMap((name) => [`holdover/${name}.json`, `holdover/${name}.jpg`]),
  ];
  expect(files.toSorted()).toEqual(expected.toSorted());
});

describe.each(ADDRESSES)('$name', ({ name }) => {
  const read = async (): Promise<UiGraph> =>
    JSON.parse(await readFile(new URL(`${name}.json`, FOLDER), 'utf8'));

  test('it runs to its end, and its thumbnail is what it made', async () => {
    const prompt = promptOf(await read(), await json('/object_info'));
    const made = await sharp(await runOf(prompt), { animated: name === 'animation' })
      .resize({ width: WIDTH })
      .toBuffer();
    const path = fileURLToPath(
      new URL(name.includes('/') ? `${name}.jpg` : `${name}-1.webp`, FOLDER),
    );
    if (WRITES) {
      const options = { animated: name === 'animation' };
      await writeFile(path, await encoded(sharp(made, options), path));
    }
    expect(await difference(made, await readFile(path))).toBeLessThan(15);
  });
});

/** Runs a graph as a program would, and answers the bytes of the file it saved. */
async function runOf(prompt: object): Promise<Buffer> {
  const { text } = await call(holdover.url, '/prompt', {
    method: 'POST',
    body: JSON.stringify({ prompt }),
  });
  const { prompt_id: id, node_errors: errors } = JSON.parse(text);
  expect(errors).toEqual({});
  await expect.poll(async () => (await json(`/history/${id}`))[id], WAITING).toBeDefined();
  const entry = (await json(`/history/${id}`))[id];
  expect(entry.status.status_str).toBe('success');
  const outputs = Object.values(entry.outputs) as { images?: { type: string }[] }[];
  const saved = outputs.flatMap(({ images = [] }) => images).find(({ type }) => type === 'output');
  return (await call(holdover.url, `/view?${new URLSearchParams(saved)}`)).body;
}

function encoded(picture: Sharp, path: string): Promise<Buffer> {
  return (
    path.endsWith('.jpg')
      ? picture.jpeg({ quality: 78 })
      : picture.webp({ quality: path.includes('animation') ? 55 : 80, effort: 6, loop: 0 })
  ).toBuffer();
}

/** Mean difference of the levels of two pictures, 0 to 255. */
async function difference(one: Buffer, other: Buffer): Promise<number> {
  const [a, b] = await Promise.all(
    [one, other].map((bytes) => sharp(bytes).removeAlpha().toColourspace('srgb').raw().toBuffer()),
  );
  if (a?.length !== b?.length) return 255;
  const sum = a!.reduce((total, level, i) => total + Math.abs(level - b![i]!), 0);
  return sum / a!.length;
}
