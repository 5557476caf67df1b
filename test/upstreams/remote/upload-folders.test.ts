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
const DIGITS = 'ab'.repeat(32);
const FILE = { user: 'anna', filePath: 'input/sub/x.png', hash: `blake3:${DIGITS}` };
const graph = (image: unknown): Graph =>
  ({ '1': { class_type: 'LoadImage', inputs: { image } } }) as Graph;

test.each([
  ['user', { user: 'bert' }],
  ['bytes', { hash: `blake3:${'cd'.repeat(32)}` }],
])('another %s, another folder', (_what, change) => {
  const places = createUploadPaths(SECRET);
  const folderOf = (path: string) => path.split('/')[1];
  expect(folderOf(places.pathOf({ ...FILE, ...change }))).not.toBe(folderOf(places.pathOf(FILE)));
});

test.each(['models/loras/x.safetensors', 'x.png'])('%s stays where it wants to be', (filePath) => {
  expect(createUploadPaths(SECRET).pathOf({ ...FILE, filePath })).toBe(filePath);
});

test.each([
  ['cannot read input/holdover-0123456789abcdef/x.png', 'cannot read input/x.png'],
  ["no '/srv/my engine/input/holdover-0123456789abcdef/x.png'", "no 'input/x.png'"],
  ['C:\\ui\\input\\holdover-0123456789abcdef\\x.png', 'input\\x.png'],
  ['/root/ComfyUI/temp/threed/pic.png is gone', 'temp/threed/pic.png is gone'],
  ['see https://host/a/output/b', 'see https://host/a/output/b'],
  ['holdover-x/y holdover-demo', 'holdover-x/y holdover-demo'],
])('no caller is shown a folder of the host: %s', (text, shown) => {
  expect(withoutFolders(text)).toBe(shown);
});

test('a message with much space takes no more time than its length', () => {
  const space = ' '.repeat(500_000);
  const folder = 'holdover-0123456789abcdef';
  expect(withoutFolders(`${folder}${space}x`)).toBe(`${space}x`);
  const paths = '/ (/='.repeat(100_000);
  expect(withoutFolders(paths)).toBe(paths);
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
  expect(JSON.stringify(refused)).toContain(`no input/${file.hash.slice('blake3:'.length)}.png`);
  expect(JSON.stringify(refused)).not.toContain('holdover-');
});
