// README and docs: links lead to pages and headings that exist, and named files of the source exist.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
/** Without blocks of code. */
const proseOf = (page: string): string => textOf(page).replaceAll(/^```.*?^```$/gms, '');

/** The anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(page: string): readonly string[] {
  const headings = proseOf(page).matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{Letter}\p{Number}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinksOf(page: string): readonly string[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links
    .filter((link) => !/^https?:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
}

/** Files and folders that a page names in code marks; files of `src` also without that word. */
function missingFilesOf(page: string): readonly string[] {
  const marked = [
    ...proseOf(page).matchAll(/`((?:src|test|fixtures|deploy)\/[\w./*-]+)`/g),
    ...proseOf(page).matchAll(/`((?:[a-z0-9-]+\/)+[\w.-]+\.ts)`/g),
  ];
  return marked
    .map(([, path = '']) => path)
    .filter((path) => ![path, `${path}.ts`, `src/${path}`].some(existsPath));
}

function existsPath(path: string): boolean {
  if (!path.includes('*')) return existsSync(join(ROOT, path));
  const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
  const names = readdirSync(join(ROOT, dirname(path)), { encoding: 'utf8' });
  return names.some((name) => pattern.test(`${dirname(path)}/${name}`));
}

describe.each(PAGES)('%s', (page) => {
  test('has no broken link', () => expect(brokenLinksOf(page)).toEqual([]));
  test('names files that exist', () => expect(missingFilesOf(page)).toEqual([]));
});

test('the README is short, and shows pictures that load quickly', () => {
  expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(150);
  const pictures = readdirSync(join(ROOT, 'docs/images'));
  const sizes = pictures.map((name) => readFileSync(join(ROOT, 'docs/images', name)).length);
  expect(Math.max(...sizes)).toBeLessThan(150_000);
});
