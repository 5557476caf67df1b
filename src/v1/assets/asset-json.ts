import type Koa from 'koa';
import { isoTime } from '../../lib/clock.ts';
import { rulesFor } from '../../dialects/dialect.ts';
import {
  type AssetCatalog,
  type FileAsset,
  nameOf,
  pathOf,
  tagsOf,
} from '../../files/asset-catalog.ts';
import { assetIdOf } from '../../files/asset-id.ts';
import type { PublicAddresses } from '../../http/public-address.ts';
import type { JsonObject } from '../../protocol/json.ts';
import { updatedAtMs } from './asset-page.ts';

/** Services of the bodies that show assets. */
export type ShownAssets = {
  readonly catalog: AssetCatalog;
  /** The addresses at which callers reach the server. */
  readonly addresses: PublicAddresses;
};

/** Files that a client can show from their bytes. */
const PREVIEWABLE = /^(image|video|audio|text)\//;

/** Returns an asset as the assets API shows it. */
export async function assetJson(
  { catalog, addresses }: ShownAssets,
  ctx: Koa.Context,
  asset: FileAsset,
): Promise<JsonObject> {
  const { row, labels } = asset;
  const path = pathOf(row);
  const preview =
    labels.previewId === undefined ? undefined : await catalog.find(row.user, labels.previewId);
  const root =
    rulesFor(ctx).previewUrl === 'address'
      ? addresses.of(ctx.req)?.base
      : addresses.prefixOf(ctx.req);
  const shown = preview?.row ?? row;
  const hasPreview = preview !== undefined || PREVIEWABLE.test(row.contentType);
  return {
    ...summaryJson(asset),
    ...(row.hash !== null && { hash: row.hash }),
    loader_path: path,
    display_name: path,
    ...(hasPreview && { preview_url: `${root ?? ''}${viewPathOf(shown)}` }),
    ...(labels.previewId !== undefined && { preview_id: labels.previewId }),
    user_metadata: labels.metadata ?? {},
    created_at: isoTime(row.modifiedAtMs),
    updated_at: isoTime(updatedAtMs(asset)),
    last_access_time: isoTime(row.modifiedAtMs),
  };
}

/** Returns the members of an asset that the answer to an upload has as well. */
export function summaryJson(asset: FileAsset): JsonObject {
  const { row } = asset;
  return {
    id: assetIdOf(row.user, row),
    name: nameOf(asset),
    ...(row.hash !== null && { asset_hash: row.hash }),
    size: row.sizeBytes,
    mime_type: row.contentType,
    tags: tagsOf(asset),
  };
}

function viewPathOf({ type, filename, subfolder }: FileAsset['row']): string {
  const folder = subfolder === '' ? '' : `&subfolder=${encodeURIComponent(subfolder)}`;
  return `/api/view?type=${type}&filename=${encodeURIComponent(filename)}${folder}`;
}
