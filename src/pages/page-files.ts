import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';
import { contentType } from 'mime-types';
import { packageUrl } from '../lib/package-url.ts';

/** A text file of the page, as it is sent. */
export type PageFile = { readonly contentType: string; readonly text: string };

const PAGE_FOLDER = packageUrl('page/');

/** Reads the page and its files once; all of them are small. */
export function readPage(): {
  readonly html: PageFile;
  /** The page that shows which clients still use v1. */
  readonly report: PageFile;
  readonly files: ReadonlyMap<string, PageFile>;
} {
  const names = readdirSync(PAGE_FOLDER).filter((name) => /\.(js|css|svg)$/.test(name));
  return {
    html: readPageFile('index.html'),
    report: readPageFile('report.html'),
    files: new Map(names.map((name) => [name, readPageFile(name)])),
  };
}

/** The path of the page; its files are below. */
export const PAGE_PATH = '/holdover';

/** Every path of Holdover's own page but `/`. */
export function pagePaths(): ReadonlySet<string> {
  const names = ['report', 'report.json', ...readPage().files.keys()];
  return new Set([PAGE_PATH, ...names.map((name) => `${PAGE_PATH}/${name}`)]);
}

function readPageFile(name: string): PageFile {
  return {
    contentType: contentType(extname(name)) || 'application/octet-stream',
    text: readFileSync(new URL(name, PAGE_FOLDER), 'utf8'),
  };
}
