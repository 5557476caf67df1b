import { expect, test } from 'vitest';
import {
  createUploadPaths,
  withoutFolders,
} from '../../../src/upstreams/remote-files/upload-paths.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import { error } from '../../support/upstreams/hostile-v2.ts';
import { spooled, value } from '../../support/app/jobs.ts';
import { CALLER, openRemote } from './open.ts';

const SECRET = Buffer.from('a secret of this server');
const FILE = { user: 'anna', filePath: 'input/sub/x.png', hash: 'blake3:ab' };
const graph = (image: unknown): Graph =>
  ({ '1': { class_type: 'LoadImage', inputs: { image } } }) as Graph;

test('an upload lies in a folder of its own below input', () => {
  expect(createUploadPaths(SECRET).pathOf(FILE)).toMatch(
    /^input\/holdover-[0-9a-f]{16}\/sub\/x\.png$/,
  );
});

test.each([
  ['user', { user: 'bert' }],
  ['name', { filePath: 'input/sub/y.png' }],
  ['bytes', { hash: 'blake3:cd' }],
])('another %s, another folder', (_what, change) => {
  const places = createUploadPaths(SECRET);
  const folderOf = (path: string) => path.split('/')[1];
  expect(folderOf(places.pathOf({ ...FILE, ...change }))).not.toBe(folderOf(places.pathOf(FILE)));
});

test('a server that is started again finds the same folder, another server another', () => {
  expect(createUploadPaths(Buffer.from(SECRET)).pathOf(FILE)).toBe(
    createUploadPaths(SECRET).pathOf(FILE),
  );
  expect(createUploadPaths(Buffer.from('else')).pathOf(FILE)).not.toBe(
    createUploadPaths(SECRET).pathOf(FILE),
  );
});

test.each(['models/loras/x.safetensors', 'x.png'])('%s stays where it wants to be', (filePath) => {
  expect(createUploadPaths(SECRET).pathOf({ ...FILE, filePath })).toBe(filePath);
});

test('no caller is shown the folder', () => {
  const path = createUploadPaths(SECRET).pathOf(FILE);
  expect(withoutFolders(`cannot read ${path}, ${path}`)).toBe(
    'cannot read input/sub/x.png, input/sub/x.png',
  );
  expect(withoutFolders('C:\\input\\holdover-0123456789abcdef\\x.png')).toBe('C:\\input\\x.png');
  expect(withoutFolders('holdover-x/y holdover-demo')).toBe('holdover-x/y holdover-demo');
});

test('a message with much space takes no more time than its length', () => {
  const space = ' '.repeat(500_000);
  const folder = 'holdover-0123456789abcdef';
  expect(withoutFolders(`${folder}${space}x`)).toBe(`${space}x`);
  expect(withoutFolders(`not in [\n        '${folder}/a.png', 'b.png']`)).toBe(
    "not in [\n        'b.png']",
  );
});

test('a service that goes by paths learns the very path of the upload, its refusals are readable', async () => {
  const { upstream, remote } = await openRemote({ assetMode: 'string', uploadPathSecret: SECRET });
  const file = await spooled('BYTES');
  const filePath = 'input/x.png';
  const { id } = value(
    await remote.createAsset(CALLER, { file, filePath, contentType: 'image/png' }),
  );
  const sentAs = /name="file_path"\r\n\r\n(.+)\r\n/.exec(
    upstream.requests('upload')[0]?.body.toString() ?? '',
  )?.[1];
  const ref = { __type: 'core/ASSET', info: { id, hash: file.hash, file_path: filePath } };
  const submit = () => remote.submit(CALLER, { workflow: graph(ref), extraData: {} });
  value(await submit());
  const named = JSON.parse(upstream.requests('submit')[0]?.body.toString() ?? '');
  expect(named.workflow['1'].inputs.image).toBe(sentAs);
  const details = { node_errors: { '1': [{ field: 'image', reason: `no ${sentAs}` }] } };
  upstream.once('submit', ({ json }) =>
    json(422, error('invalid_workflow', `no ${sentAs}`, details)),
  );
  const refused = await submit();
  expect(JSON.stringify(refused)).toContain('no input/x.png');
  expect(JSON.stringify(refused)).not.toContain('holdover-');
});
