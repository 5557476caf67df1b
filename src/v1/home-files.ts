import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';
import { contentType } from 'mime-types';
import { packageUrl } from '../lib/package-url.ts';

/** A text of the page as it is sent. */
export type PageFile = { readonly contentType: string; readonly text: string };

const FOLDER = packageUrl('page/');

/** Reads the page and what it is made of, once: all of it is small. */
export function readPage(): {
  readonly html: PageFile;
  /** Who still needs v1. */
  readonly report: PageFile;
  readonly files: ReadonlyMap<string, PageFile>;
} {
  const names = readdirSync(FOLDER).filter((name) => /\.(js|css|svg)$/.test(name));
  return {
    html: readOne('index.html'),
    report: readOne('report.html'),
    files: new Map(names.map((name) => [name, readOne(name)])),
  };
}

/** Where the page always is; what it is made of is below. */
export const HOME = '/holdover';

/** Every path of Holdover's own page but `/`. */
export function pagePaths(): ReadonlySet<string> {
  const names = ['report', 'report.json', ...readPage().files.keys()];
  return new Set([HOME, ...names.map((name) => `${HOME}/${name}`)]);
}

function readOne(name: string): PageFile {
  return {
    contentType: contentType(extname(name)) || 'application/octet-stream',
    text: readFileSync(new URL(name, FOLDER), 'utf8'),
  };
}
