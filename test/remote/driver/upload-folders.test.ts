import { expect, test } from 'vitest';
import { UploadPaths, withoutFolders } from '../../../src/remote/files/upload-paths.ts';

const SECRET = Buffer.from('a secret of this server');
const DIGITS = 'ab'.repeat(32);
const FILE = { user: 'anna', filePath: 'input/sub/x.png', hash: `blake3:${DIGITS}` };

test.each([
  ['user', { user: 'bert' }],
  ['bytes', { hash: `blake3:${'cd'.repeat(32)}` }],
])('another %s, another folder', (_what, change) => {
  const places = new UploadPaths(SECRET);
  const folderOf = (path: string) => path.split('/')[1];
  expect(folderOf(places.pathOf({ ...FILE, ...change }))).not.toBe(folderOf(places.pathOf(FILE)));
});

test.each(['models/loras/x.safetensors', 'x.png'])('%s stays where it wants to be', (filePath) => {
  expect(new UploadPaths(SECRET).pathOf({ ...FILE, filePath })).toBe(filePath);
});

test.each([
  ['cannot read input/holdover-0123456789abcdef/x.png', 'cannot read input/x.png'],
  ["no '/srv/my engine/input/holdover-0123456789abcdef/x.png'", "no 'input/x.png'"],
  ['C:\\ui\\input\\holdover-0123456789abcdef\\x.png', 'input\\x.png'],
  ['/root/ComfyUI/temp/threed/pic.png is gone', 'temp/threed/pic.png is gone'],
  ["no '/srv/my inputs/holdover-0123456789abcdef/x.png'", "no 'x.png'"],
  ['no D:\\in\\holdover-0123456789abcdef\\x.png', 'no x.png'],
  ["no 'C:\\\\input\\\\holdover-0123456789abcdef\\\\x.png'", "no 'input\\\\x.png'"],
  ["no ('/srv/in/holdover-0123456789abcdef/x.png')", "no ('x.png')"],
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
