// Behind a service that knows no users the uploads of all lie beside each other, each in a folder
// that no prompt may name, under a name that tells only its content. An engine lists such folders
// to all callers, and a service may have one file for equal bytes.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import type { Holdover } from '../support/processes/holdover.ts';
import { type HostileV2, error, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import { startInFront } from '../support/processes/holdover-before-hostile.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';

const ALICE = { 'X-API-Key': 'alice-key' };
const BOB = { 'X-API-Key': 'bob-key' };
const ANOTHER = 'holdover-0123456789abcdef';

let upstream: HostileV2;
let holdover: Holdover;
/** Alice's, with her file in it. */
let hers: string;
/** The name of the file in it. */
let contentName: string;

beforeAll(async () => {
  upstream = await openHostileV2();
  upstream.always('byHash', ({ res }) => void res.writeHead(404).end());
  const probe = await startInFront(upstream);
  await uploadInput(probe.url, { name: 'hers.png', bytes: await pngOf() }, ALICE);
  [hers = '', contentName = ''] = pathOf(upstream).split('/');
  upstream.always('objectInfo', ({ json }) => json(200, definitions([ANOTHER, hers])));
  await probe.terminate();
  holdover = await startInFront(upstream, { dataDir: probe.dataDir });
});
afterAll(async () => {
  await holdover?.dispose();
  await upstream?.close();
});

/** The path below `input` at which the service got the last upload. */
function pathOf(service: HostileV2): string {
  const text = service.requests('upload').at(-1)?.body.toString('latin1') ?? '';
  expect(text).not.toContain('hers');
  return /holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png/.exec(text)?.[0] ?? 'none';
}

/** An engine's definitions of nodes that choose among its folders and all of its files. */
function definitions(folders: readonly string[]): object {
  const node = (input: object) => ({
    input,
    input_order: { required: Object.keys(input) },
    output: ['IMAGE'],
    output_is_list: [false],
    output_name: ['IMAGE'],
    name: 'x',
    display_name: 'x',
    description: '',
    category: 'x',
    output_node: true,
  });
  const names = folders.map((folder) => `${folder}/hers.png`);
  return {
    LoadImageSetFromFolderNode: node({
      required: { folder: [['shelf', ...folders], { default: folders[0] }] },
    }),
    LoadImageDataSetFromFolder: node({
      required: { folder: ['COMBO', { options: ['shelf', ...folders] }] },
    }),
    CreateList: node({ required: {} }),
    NewerCombo: node({ required: { folder: ['COMBO', { options: [...folders, 'shelf'] }] } }),
    AllFiles: node({ optional: { file: [['a.png', ...names, `${ANOTHER}\\b.png`]] } }),
    LoadImage: node({ required: { image: [['a.png', ...names], { image_upload: true }] } }),
    Nested: node({
      required: {
        mode: [
          'COMFY_DYNAMICCOMBO_V3',
          {
            options: [
              {
                key: 'file',
                inputs: { required: { image: ['COMBO', { image_upload: true, options: names }] } },
              },
            ],
          },
        ],
        several: ['COMBO', { options: names, multiselect: true, image_upload: true }],
        scene: ['LOAD_3D', {}],
      },
    }),
    Seeded: node({ required: { seed: ['INT', { max: '18446744073709551615' }] } }),
  };
}

const graphWith = (class_type: string, inputs: object) => ({ '1': { class_type, inputs } });
const post = async (prompt: object, headers: Record<string, string>) =>
  (await postPrompt(holdover.url, { prompt }, { headers })) as { status: number; body: any };

describe('choosers and lists', () => {
  test.each([
    ['alice', ALICE],
    ['bob', BOB],
  ])('show %s no upload folder', async (_who, headers) => {
    for (const path of [
      '/object_info',
      '/api/object_info',
      '/object_info/AllFiles',
      '/models/loras',
    ]) {
      const answer = await fetch(holdover.url + path, { headers });
      expect([path, answer.status]).toEqual([path, 200]);
      expect(await answer.text()).not.toMatch(/holdover-/i);
    }
  });

  test('keep all else, in its order', async () => {
    const info = await getJson(`${holdover.url}/object_info`, BOB);
    expect(info.LoadImageSetFromFolderNode.input.required.folder).toEqual([['shelf'], {}]);
    expect(info.NewerCombo.input.required.folder).toEqual(['COMBO', { options: ['shelf'] }]);
    expect(info.AllFiles.input.optional.file).toEqual([['a.png']]);
    expect(Object.keys(info.AllFiles)).toEqual(Object.keys((definitions([]) as any).AllFiles));
  });

  test('of files show each user their own', async () => {
    const lists = await Promise.all(
      [ALICE, BOB].map((headers) => getJson(`${holdover.url}/internal/files/input`, headers)),
    );
    expect(lists.map(String)).toEqual([expect.stringContaining('hers.png'), '']);
    expect(JSON.stringify(lists)).not.toContain('holdover-');
  });
});

describe('a graph that names the folder of another user is refused, and never sent', () => {
  const encodings = (folder: string): readonly unknown[] => [
    folder,
    `${folder}/`,
    `${folder}/hers.png`,
    `${folder}\\hers.png`,
    `${folder}/hers.png [input]`,
    `./${folder}/hers.png`,
    `x/../${folder}/hers.png`,
    `/srv/engine/input/${folder}/hers.png`,
    `C:\\engine\\input\\${folder}\\hers.png`,
    `file:///srv/engine/input/${folder}/hers.png`,
    `${folder}%2Fhers.png`,
    `${folder}%252Fhers.png`,
    folder.replace('holdover', '%68oldover'),
    folder.replace('-', '%2D'),
    folder.replace('-', '%252d'),
    folder.replace('holdover', '\\u0068oldover'),
    folder.toUpperCase(),
    `${folder}.`,
    `${folder} `,
    `a.png\n${folder}/hers.png`,
    `["${folder}/hers.png"]`,
    { subfolder: folder, filename: 'hers.png', type: 'input' },
    { a: [{ b: [`${folder}/hers.png`] }] },
    { [folder]: true },
    'holdover-*',
    'holdover-0*/hers.png',
    'holdover-[0-9]/x',
  ];
  const CLASSES = ['LoadImageSetFromFolderNode', 'LoadImage', 'AllFiles', 'UnknownClass'];

  test.each(CLASSES)('by an input of %s', async (class_type) => {
    for (const input of ['folder', 'image', 'subfolder']) {
      for (const value of encodings(hers)) {
        const { status, body } = await post(graphWith(class_type, { [input]: value }), BOB);
        expect([value, status]).toEqual([value, 400]);
        expect(body.error.type).toBe('prompt_outputs_failed_validation');
        expect(body.node_errors['1'].errors[0]).toMatchObject({
          type: 'value_not_in_list',
          extra_info: { input_name: input },
        });
        expect(JSON.stringify(body)).not.toContain(hers);
      }
    }
    expect(upstream.requests('submit')).toHaveLength(0);
  });

  test('one that does not exist is no user’s either', async () => {
    const { status } = await post(graphWith('LoadImage', { image: `${ANOTHER}/x.png` }), ALICE);
    expect(status).toBe(400);
    expect(upstream.requests('submit')).toHaveLength(0);
  });
});

test('names inside dynamic inputs, lists and objects are sent as the caller’s files', async () => {
  const inputs = {
    mode: 'file',
    'mode.image': 'hers.png',
    several: { __value__: ['hers.png', 'hers.png [input]'] },
    scene: { image: 'hers.png', mask: '', camera_info: { zoom: 1 } },
  };
  const { status, body } = await post(graphWith('Nested', inputs), ALICE);
  expect([status, body.node_errors]).toEqual([200, {}]);
  const sent = JSON.parse(upstream.requests('submit').at(-1)?.body.toString() ?? '');
  const hersAsAsset = expect.objectContaining({ __type: 'core/ASSET' }) as object;
  expect(sent.workflow['1'].inputs).toEqual({
    mode: 'file',
    'mode.image': hersAsAsset,
    several: { __value__: [hersAsAsset, hersAsAsset] },
    scene: { image: hersAsAsset, mask: '', camera_info: { zoom: 1 } },
  });
  const history = await getJson(`${holdover.url}/queue`, ALICE);
  expect(JSON.stringify(history)).not.toContain('core/ASSET');
});

describe('a folder of the caller', () => {
  const choices = async (headers: Record<string, string>) =>
    (await getJson(`${holdover.url}/object_info/LoadImageDataSetFromFolder`, headers))
      .LoadImageDataSetFromFolder.input.required.folder;

  test('is offered to its user alone, and sent as its files', async () => {
    for (let i = 10; i < 22; i++) {
      const file = { name: `${i}.png`, bytes: await pngOf({ r: i, g: 0, b: 0 }) };
      await uploadInput(holdover.url, { ...file, fields: { subfolder: 'cats' } }, ALICE);
    }
    expect([await choices(ALICE), await choices(BOB)]).toEqual([
      ['COMBO', { options: ['shelf', 'cats'] }],
      ['COMBO', { options: ['shelf'] }],
    ]);
    const prompt = {
      ...graphWith('LoadImageDataSetFromFolder', { folder: 'cats' }),
      '2': { class_type: 'Seeded', inputs: { seed: ['1', 0] } },
    };
    const { status, body } = await post(prompt, ALICE);
    expect([status, body.node_errors]).toEqual([200, {}]);
    const { workflow } = JSON.parse(upstream.requests('submit').at(-1)?.body.toString() ?? '');
    const list = (...from: number[]) => ({
      class_type: 'CreateList',
      inputs: Object.fromEntries(from.map((n, i) => [`inputs.input${i}`, [`1.0.0.${n}`, 0]])),
    });
    expect(Object.keys(workflow)).toHaveLength(12 + 2 + 2);
    expect(workflow['1.0.0.3']).toEqual({
      class_type: 'LoadImage',
      inputs: { image: expect.objectContaining({ __type: 'core/ASSET' }) },
    });
    expect(workflow['1.0.0.13']).toEqual(list(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    expect(workflow['1.0.0.14']).toEqual(list(11, 12));
    expect(workflow['1']).toEqual(list(13, 14));
    expect(workflow['2']).toEqual(prompt['2']);
    const queue = JSON.stringify(await getJson(`${holdover.url}/queue`, ALICE));
    expect(queue).toContain('"inputs":{"folder":"cats"}');
    expect(queue).not.toMatch(/core\/ASSET|CreateList/);
  });

  test('is no folder of another user', async () => {
    await post(graphWith('LoadImageDataSetFromFolder', { folder: 'cats' }), BOB);
    const { workflow } = JSON.parse(upstream.requests('submit').at(-1)?.body.toString() ?? '');
    expect(workflow['1'].inputs).toEqual({ folder: 'cats' });
  });
});

describe('the name that a service has put into a picture', () => {
  test.each([
    ['hers', () => hers],
    ['that of another user with the same bytes', () => ANOTHER],
  ])('is sent again by the owner of the bytes, whose folder is %s', async (_whose, folder) => {
    const image = `${folder()}/${contentName}`;
    const { status, body } = await post(graphWith('LoadImage', { image }), ALICE);
    expect([status, body.node_errors]).toEqual([200, {}]);
    const sent = upstream.requests('submit').at(-1)?.body.toString() ?? '';
    expect(sent).toContain('core/ASSET');
    const query = new URLSearchParams({
      filename: contentName,
      subfolder: folder(),
      type: 'input',
    });
    const shown = await fetch(`${holdover.url}/view?${query}`, { headers: ALICE });
    expect(shown.status).toBe(200);
  });

  test('is refused when another user sends it', async () => {
    const image = `${hers}/${contentName}`;
    const { status } = await post(graphWith('LoadImage', { image }), BOB);
    expect(status).toBe(400);
  });
});

test('what a service says of a file names it as its user did, with no folder of the host', async () => {
  const path = `/srv/engine/input/${ANOTHER}/${contentName}`;
  const message = `cannot identify image file '${path}'`;
  upstream.once('submit', ({ json }) => json(422, error('invalid_workflow', message)));
  const { status, body } = await post(graphWith('LoadImage', { image: 'hers.png' }), ALICE);
  expect([status, body.error.message]).toEqual([
    400,
    "cannot identify image file 'input/hers.png'",
  ]);
});

test('the end of a job and its outputs name files as the user did', async () => {
  const name = contentName.replace('.', '_up_00001_.');
  const file = { node_id: '1', name, type: 'image', content_type: 'image/png', size_bytes: 1 };
  upstream.script(async ({ id }) => {
    upstream.change(id, {
      status: 'failed',
      error: { code: 'job_failed', message: `bad ${ANOTHER}/${contentName}`, node_id: '1' },
      outputs: [{ ...file, id: 'made', hash: null, url: '/x', url_expires_at: null }],
    });
  });
  const { body } = await post(graphWith('LoadImage', { image: 'hers.png' }), ALICE);
  const entry = await vi.waitUntil(() => entryOf(holdover.url, body.prompt_id, ALICE));
  const text = JSON.stringify(entry);
  expect(text).toContain('bad hers.png');
  expect(text).toContain('"filename":"hers_up_00001_.png"');
  expect(text).not.toMatch(/holdover-|[0-9a-f]{64}/);
  upstream.script(undefined);
});

test.each(['holdover-demo', 'my holdover', 'holdover-0123', 'xholdover-0123456789abcdef', 'a*b'])(
  'a text such as "%s" is a text',
  async (text) => {
    const { status } = await post(graphWith('UnknownClass', { text }), BOB);
    expect(status).toBe(200);
  },
);

test('what an engine says of its choices names no upload of others', async () => {
  const list = `folder: 'x' not in ['shelf', '${ANOTHER}', '${hers}/hers.png', 'b']`;
  const details = {
    node_errors: {
      '1': {
        errors: [
          {
            type: 'value_not_in_list',
            message: 'Value not in list',
            details: list,
            extra_info: {
              input_name: 'folder',
              input_config: [['shelf', ANOTHER, `${hers}/hers.png`], {}],
              received_value: 'x',
            },
          },
        ],
        dependent_outputs: ['1'],
        class_type: 'LoadImageSetFromFolderNode',
      },
    },
  };
  upstream.once('submit', ({ json }) =>
    json(422, { error: { code: 'invalid_workflow', message: `${list} (${hers})`, details } }),
  );
  const { status, body } = await post(
    graphWith('LoadImageSetFromFolderNode', { folder: 'x' }),
    BOB,
  );
  expect(status).toBe(400);
  const [error] = body.node_errors['1'].errors;
  expect(error.details).toBe("folder: 'x' not in ['shelf', 'b']");
  expect(error.extra_info.input_config).toEqual([['shelf'], {}]);
  expect(JSON.stringify(body)).not.toMatch(/holdover-[0-9a-f]|hers/);
});
