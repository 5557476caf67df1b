import { readFileSync } from 'node:fs';
import { packageUrl } from '../lib/package-url.ts';

type SearchWords = {
  /** The words by which a front end's search finds a class, beside its name, with commas. */
  readonly aliases: { readonly [className: string]: string };
  /** The heading under which a front end shows a class on its tab Essentials. */
  readonly essentials: { readonly [className: string]: string };
};

const TEXT = readFileSync(packageUrl('fixtures/search-words.json'), 'utf8');
/** The words of all classes, as front ends show them. */
export const SEARCH_WORDS = JSON.parse(TEXT) as SearchWords;
