import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runFolder } from '../graphs/v1-folders.ts';

/** Must never be served: it lies beside the root, in a folder whose name begins like the root's. */
export const OUTSIDE = 'outside of the root';

/** Paths below the address of Holdover's own page at which there is nothing. */
export const NOT_OF_PAGE = [
  '/holdover/',
  '/holdover/nope.js',
  '/holdover/index.html',
  '/holdover/../package.json',
  '/holdover/..%2fpackage.json',
  '/holdover/%2e%2e/package.json',
  '/holdover/__proto__',
  '/holdover/page.js/',
];

export const SCRIPT = `export const text = '${'abcdefgh '.repeat(400)}';\n`;

/** A small front end as bundlers lay them out, with everything that could lead out of it. */
export type WebRoot = {
  readonly root: string;
  write(name: string, content: string | Buffer): Promise<void>;
  dispose(): Promise<void>;
};

const FILES: Readonly<Record<string, string | Buffer>> = {
  'index.html': '<!doctype html><title>stub</title>\n',
  'assets/index-B2rHQ9Sn.js': SCRIPT,
  'assets/index-B2rHQ9Sn.css': 'body { color: red }\n',
  'assets/default-workflow.json': '{}',
  'assets/logo.svg': `<svg xmlns="http://www.w3.org/2000/svg">${' '.repeat(2000)}</svg>`,
  'assets/font.woff2': Buffer.alloc(4000, 1),
  'assets/picture.png': Buffer.alloc(4000, 2),
  'assets/module.wasm': Buffer.alloc(2000),
  'extensions/core/clipspace.js': 'export {};',
  'extensions/core/style.css': 'b {}',
  'extensions/pack/web/deep.js': 'export {};',
  'extensions/.hidden/secret.js': 'export {};',
  'templates/flux.json': '{"nodes":[]}',
  'docs/KSampler/en.md': '# KSampler\n',
  'name with blank.txt': 'blank',
  '.env': OUTSIDE,
  '.git/config': OUTSIDE,
};

export async function makeWebRoot(): Promise<WebRoot> {
  const folder = await runFolder('web');
  const root = join(folder, 'static');
  const write: WebRoot['write'] = async (name, content) => {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), content);
  };
  for (const [name, content] of Object.entries(FILES)) await write(name, content);
  await mkdir(join(folder, 'static-not'));
  await writeFile(join(folder, 'static-not/secret.txt'), OUTSIDE);
  await writeFile(join(folder, 'secret.txt'), OUTSIDE);
  await symlink('../secret.txt', join(root, 'link.txt'));
  await symlink('..', join(root, 'up'));
  await symlink(join(folder, 'static-not'), join(root, 'assets/sibling'));
  await symlink('loop', join(root, 'loop'));
  await symlink('../assets', join(root, 'docs/inside'));
  return { root, write, dispose: () => rm(folder, { recursive: true, force: true }) };
}
