import { headersElsewhere } from '../http/file-headers.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Blobs } from '../blobs/blobs.ts';
import type { FileRouteServices } from '../v1/file-routes.ts';

type LinkToStored = NonNullable<FileRouteServices['links']['linkToStored']>;

/** Makes links to the objects of a bucket, for callers that `--view redirect` sends there. */
export function createStoredLinks(
  ledger: Ledger,
  blobs: Blobs,
  now: () => number,
): LinkToStored | undefined {
  const { linkTo } = blobs;
  if (linkTo === undefined) return undefined;
  return async ({ user }, { row, fetchDest }) => {
    const headers = headersElsewhere(row, fetchDest);
    const asset = await ledger.assets.get(row.assetId);
    const isThere = asset?.user === user && (asset.expiresAtMs ?? Infinity) > now();
    return headers && isThere ? await linkTo(asset.hash, headers) : undefined;
  };
}
