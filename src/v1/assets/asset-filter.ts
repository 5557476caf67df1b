import { type FileAsset, nameOf, pathOf, tagsOf } from '../../files/asset-catalog.ts';
import { yieldEvery } from '../../lib/event-loop.ts';
import { assetError } from './asset-error.ts';

const MAX_TAGS = 100;
const ASSETS_PER_TURN = 500;

/** Reads the filter of a query: a test of assets. Old and new names of a parameter cannot be combined. */
export function readFilter(query: URLSearchParams): (asset: FileAsset) => boolean {
  if (query.get('metadata_filter'))
    throw assetError('UNSUPPORTED_PARAM', 'metadata_filter is not supported.');
  // Every asset is the caller's own, so the value does not count.
  checkFlag(query, 'include_public');
  const any = tagList(query, 'tags_any');
  const all = eitherList(query, 'include_tags', 'tags_all');
  const none = eitherList(query, 'exclude_tags', 'tags_none');
  const usesNewNames = any.length > 0 || all.isNew || none.isNew;
  const conflicting = all.tags.filter((tag) => none.tags.includes(tag));
  if (usesNewNames && conflicting.length > 0) {
    throw assetError('INVALID_TAG_FILTER', 'A tag is both required and excluded.', {
      conflicting_tags: conflicting,
    });
  }
  const nameContains = (query.get('name_contains') ?? '').toLowerCase();
  // A hash, or the path of a file: front ends look for the names in their workflows so.
  const hash = query.get('hash')?.trim();
  return (asset) => {
    const tags = tagsOf(asset);
    return (
      all.tags.every((tag) => tags.includes(tag)) &&
      (any.length === 0 || any.some((tag) => tags.includes(tag))) &&
      !none.tags.some((tag) => tags.includes(tag)) &&
      nameOf(asset).toLowerCase().includes(nameContains) &&
      (!hash || asset.row.hash === hash.toLowerCase() || pathOf(asset.row) === hash)
    );
  };
}

/** Returns the assets that a filter selects. */
export async function filtered(
  assets: readonly FileAsset[],
  isSelected: (asset: FileAsset) => boolean,
): Promise<readonly FileAsset[]> {
  const found: FileAsset[] = [];
  const pause = yieldEvery(ASSETS_PER_TURN);
  for (const asset of assets) {
    await pause();
    if (isSelected(asset)) found.push(asset);
  }
  return found;
}

/** Counts the tags of assets, the most frequent first, equal counts by name. */
export function tagCounts(assets: readonly FileAsset[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const asset of assets)
    for (const tag of tagsOf(asset)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}

/** Reads an integer of the query; `INVALID_QUERY` outside of its bounds. */
export function boundedInteger(
  query: URLSearchParams,
  name: string,
  { min, max, absent }: { readonly min: number; readonly max: number; readonly absent: number },
): number {
  const text = query.get(name)?.trim();
  if (text === undefined) return absent;
  const value = /^[+-]?\d{1,99}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalidQuery(name, `It must be an integer from ${min} to ${max}.`);
}

/** Reads a word of the query; `INVALID_QUERY` for another than these. */
export function oneOf<const Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly [Word, ...Word[]],
): Word {
  const text = query.get(name);
  if (text === null) return words[0];
  const word = words.find((each) => each === text);
  if (word !== undefined) return word;
  throw invalidQuery(name, `It must be one of: ${words.join(', ')}.`);
}

/** Refuses a value of the query that is not a boolean. */
export function checkFlag(query: URLSearchParams, name: string): void {
  oneOf(query, name, ['true', 'false', '1', '0', 'True', 'False']);
}

function invalidQuery(name: string, msg: string): Error {
  return assetError('INVALID_QUERY', 'Validation failed.', { errors: [{ loc: [name], msg }] });
}

/** Reads a list of tags under its old or its new name. */
function eitherList(
  query: URLSearchParams,
  oldName: string,
  newName: string,
): { readonly tags: readonly string[]; readonly isNew: boolean } {
  const [older, newer] = [tagList(query, oldName), tagList(query, newName)];
  if (older.length > 0 && newer.length > 0) {
    const message = `${oldName} and ${newName} cannot be combined.`;
    throw assetError('INVALID_TAG_FILTER', message, { parameters: [oldName, newName] });
  }
  return { tags: [...older, ...newer], isNew: newer.length > 0 };
}

function tagList(query: URLSearchParams, name: string): readonly string[] {
  const tags = query.getAll(name).flatMap(splitTags);
  if (tags.length <= MAX_TAGS) return [...new Set(tags)];
  const details = { parameter: name, count: tags.length, max: MAX_TAGS };
  throw assetError('INVALID_TAG_FILTER', `${name} lists too many tags.`, details);
}

/** Splits tags at commas, and drops spaces around them. */
export function splitTags(text: string): readonly string[] {
  return text
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
}
