import { readFileSync } from 'node:fs';
import { packageUrl } from '../lib/package-url.ts';

type SearchWords = {
  /** The words by which a front end's search finds a class, beside its name, with commas. */
  readonly aliases: { readonly [className: string]: string };
  /** The heading under which a front end shows a class on its tab Essentials. */
  readonly essentials: { readonly [className: string]: string };
};

const TEXT = readFileSync(packageUrl('fixtures/search-words.json'), 'utf8');
const { aliases, essentials } = JSON.parse(TEXT) as SearchWords;

/** Returns the words by which a search finds a class. */
export function searchAliases(className: string): readonly string[] {
  return aliases[className]?.split(', ') ?? [];
}

/** Returns the heading under which a class is on the tab Essentials. */
export function essentialsCategory(className: string): string | undefined {
  return essentials[className];
}
