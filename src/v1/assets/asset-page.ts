import { type FileAsset, nameOf } from '../../files/asset-catalog.ts';
import { fileKey } from '../../translate/file-mentions.ts';
import { parseObject } from '../../protocol/json.ts';
import { assetError } from './asset-error.ts';
import { boundedInteger, oneOf } from './asset-filter.ts';

/** The sort fields, the default first. Equal values are in the order of the files' names. */
const VALUE_OF = {
  created_at: ({ row }) => row.modifiedAtMs,
  name: nameOf,
  updated_at: updatedAtMs,
  size: ({ row }) => row.sizeBytes,
  // The time of the last access is not recorded.
  last_access_time: ({ row }) => row.modifiedAtMs,
} as const satisfies { readonly [field: string]: (asset: FileAsset) => string | number };

type SortField = keyof typeof VALUE_OF;
const SORT_FIELDS = Object.keys(VALUE_OF) as [SortField, ...SortField[]];

export type AssetPage = {
  readonly assets: readonly FileAsset[];
  readonly total: number;
  readonly has_more: boolean;
  /** Where the next page begins. */
  readonly next_cursor?: string;
};

type Order = { readonly sort: SortField; readonly order: 'asc' | 'desc' };
type Position = { readonly value: string | number; readonly key: string };

/** Returns the page of assets that a query asks for. With a cursor, `offset` does not count. */
export function pageOf(assets: readonly FileAsset[], query: URLSearchParams): AssetPage {
  const limit = boundedInteger(query, 'limit', { min: 1, max: 500, absent: 20 });
  const offset = boundedInteger(query, 'offset', { min: 0, max: Infinity, absent: 0 });
  const order: Order = {
    sort: oneOf(query, 'sort', SORT_FIELDS),
    order: oneOf(query, 'order', ['desc', 'asc']),
  };
  const cursor = query.get('after');
  const after = cursor === null ? undefined : readCursor(cursor, order);
  const sorted = assets
    .map((asset) => ({ asset, position: positionOf(asset, order.sort) }))
    .toSorted((a, b) => compare(a.position, b.position, order));
  const next =
    after === undefined
      ? offset
      : sorted.findIndex(({ position }) => compare(position, after, order) > 0);
  const start = next < 0 ? sorted.length : next;
  const page = sorted.slice(start, start + limit);
  const hasMore = start + page.length < sorted.length;
  const last = page.at(-1);
  const hasCursor = hasMore && last !== undefined && order.sort !== 'last_access_time';
  return {
    assets: page.map(({ asset }) => asset),
    total: sorted.length,
    has_more: hasMore,
    ...(hasCursor && { next_cursor: writeCursor(last.position, order) }),
  };
}

export function updatedAtMs({ row, labels }: FileAsset): number {
  return Math.max(row.modifiedAtMs, Number(labels.updatedAtMs ?? 0));
}

function positionOf(asset: FileAsset, sort: SortField): Position {
  return { value: VALUE_OF[sort](asset), key: fileKey(asset.row) };
}

function compare(one: Position, other: Position, { order }: Order): number {
  const sign = order === 'asc' ? 1 : -1;
  if (one.value !== other.value) return one.value < other.value ? -sign : sign;
  if (one.key === other.key) return 0;
  return one.key < other.key ? -sign : sign;
}

/** A cursor is opaque to clients. It holds only the caller's own file names. */
function writeCursor({ value, key }: Position, { sort, order }: Order): string {
  return Buffer.from(JSON.stringify({ s: sort, o: order, v: value, id: key })).toString(
    'base64url',
  );
}

function readCursor(text: string, { sort, order }: Order): Position {
  const { s, o, v, id: key } = parseObject(Buffer.from(text, 'base64url').toString()) ?? {};
  const value = sort === 'name' ? v : Number(v);
  const isOwn = s === sort && o === order && sort !== 'last_access_time' && typeof key === 'string';
  if (isOwn && (typeof value === 'string' || Number.isFinite(value)))
    return { value, key } as Position;
  throw assetError('INVALID_CURSOR', 'This is not a cursor of this list in this order.');
}
