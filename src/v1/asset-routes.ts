import { sendEmpty, sendJson } from '../dialects/errors.ts';
import {
  type AssetCatalog,
  type FileAsset,
  fileByHash,
  nameOf,
  tagsOf,
} from '../files/asset-catalog.ts';
import { dispositionOf } from '../http/file-headers.ts';
import { serveFile } from './files/download.ts';
import { type V1Request, type V1Route, routesFor } from './routes.ts';
import {
  changeLabels,
  invalidBody,
  readAssetBody,
  readLabels,
  readTags,
} from './assets/asset-body.ts';
import { assetError, assetNotFound } from './assets/asset-error.ts';
import {
  boundedInteger,
  checkFlag,
  filtered,
  oneOf,
  readFilter,
  tagCounts,
} from './assets/asset-filter.ts';
import { assetJson } from './assets/asset-json.ts';
import { pageOf } from './assets/asset-page.ts';
import {
  type AssetServices,
  type StoredAsset,
  linkBytes,
  readHash,
  uploadAsset,
} from './assets/asset-upload.ts';

/** The assets API: the files of the caller with names, tags and metadata. */
const assetRoutesOf = routesFor<AssetServices>({
  async 'GET /api/assets'(services, { ctx, caller, query }) {
    const filter = readFilter(query);
    const found = await filtered(await services.catalog.list(caller.user), filter);
    const { assets, ...page } = pageOf(found, query);
    const shown = await Promise.all(assets.map((asset) => assetJson(services, ctx, asset)));
    sendJson(ctx, { assets: shown, ...page });
  },
  'POST /api/assets': async (services, request) =>
    sendStored(services, request, await uploadAsset(services, request)),
  async 'POST /api/assets/from-hash'(services, request) {
    const body = await readAssetBody(request.ctx, services.bodies);
    await sendStored(services, request, await linkBytes(services, request, body));
  },
  async 'HEAD /api/assets/hash/:hash'({ files }, { ctx, caller, params }) {
    const known = await fileByHash(files, caller.user, readHash(params['hash']));
    sendEmpty(ctx, known === undefined ? 404 : 200);
  },
  async 'GET /api/assets/:id'(services, request) {
    const asset = await findAsset(services.catalog, request);
    sendJson(request.ctx, await assetJson(services, request.ctx, asset));
  },
  async 'GET /api/assets/:id/content'({ catalog, jobs }, request) {
    const { ctx, caller, query } = request;
    const asset = await findAsset(catalog, request);
    await serveFile(jobs, { ctx, caller, row: asset.row });
    const isInline = query.get('disposition')?.trim().toLowerCase() === 'inline';
    if (!isInline && (ctx.status === 200 || ctx.status === 206))
      ctx.set('Content-Disposition', dispositionOf(nameOf(asset), 'attachment'));
  },
  async 'PUT /api/assets/:id'(services, request) {
    const { catalog, bodies } = services;
    const { row } = await findAsset(catalog, request);
    const body = await readAssetBody(request.ctx, bodies);
    const given = await readLabels(body, {
      catalog,
      user: row.user,
      unknownPreview: assetNotFound,
    });
    if (Object.keys(given).length === 0 && body.mime_type === undefined)
      throw invalidBody('Name at least one of: name, tags, user_metadata, preview_id.');
    const changed = await changeLabels(catalog, row, (labels) => ({ ...labels, ...given }));
    sendJson(request.ctx, await assetJson(services, request.ctx, changed));
  },
  async 'DELETE /api/assets/:id'({ catalog }, request) {
    const { row } = await findAsset(catalog, request);
    if (!(await catalog.remove(request.caller, row)))
      throw assetError('CONFLICT', 'The file belongs to the server or to another program.');
    sendEmpty(request.ctx, 204);
  },
  async 'POST /api/assets/:id/tags'(services, request) {
    const add = (own: Tags, given: Tags): Tags => [...new Set([...own, ...given])];
    const { tags, before, after } = await changeTags(services, request, add);
    sendJson(request.ctx, {
      added: tags.filter((tag) => !before.includes(tag)),
      already_present: tags.filter((tag) => before.includes(tag)),
      total_tags: after,
    });
  },
  async 'DELETE /api/assets/:id/tags'(services, request) {
    const drop = (own: Tags, given: Tags): Tags => own.filter((tag) => !given.includes(tag));
    const { tags, before, after } = await changeTags(services, request, drop);
    sendJson(request.ctx, {
      removed: tags.filter((tag) => before.includes(tag) && !after.includes(tag)),
      not_present: drop(tags, before),
      total_tags: after,
      protected: tags.filter((tag) => after.includes(tag)),
    });
  },
  async 'GET /api/tags'({ catalog }, { ctx, caller, query }) {
    const limit = boundedInteger(query, 'limit', { min: 1, max: 1000, absent: 100 });
    const offset = boundedInteger(query, 'offset', { min: 0, max: Infinity, absent: 0 });
    const order = oneOf(query, 'order', ['count_desc', 'name_asc']);
    // Each tag has an asset, which is the caller's own: neither value counts.
    for (const name of ['include_zero', 'include_public']) checkFlag(query, name);
    const prefix = query.get('prefix')?.trim() ?? '';
    const counts = tagCounts(await catalog.list(caller.user));
    const found = counts.filter(([tag]) => tag.startsWith(prefix));
    const sorted = order === 'count_desc' ? found : found.toSorted(([a], [b]) => (a < b ? -1 : 1));
    const tags = sorted.slice(offset, offset + limit).map(([name, count]) => ({ name, count }));
    sendJson(ctx, { tags, total: found.length, has_more: offset + tags.length < found.length });
  },
  async 'GET /api/assets/tags/refine'({ catalog }, { ctx, caller, query }) {
    const limit = boundedInteger(query, 'limit', { min: 1, max: 1000, absent: 100 });
    const assets = await filtered(await catalog.list(caller.user), readFilter(query));
    sendJson(ctx, { tag_counts: Object.fromEntries(tagCounts(assets).slice(0, limit)) });
  },
  // Scans of the folders. There is nothing to scan: the ledger has each file from its first moment.
  // So a scan ends when it starts, and sends no frames.
  'POST /api/assets/seed'(_, { ctx, query }) {
    const isAwaited = WAITS.has((query.get('wait') ?? '').toLowerCase());
    if (isAwaited) sendJson(ctx, { status: 'completed', progress: NOTHING_SCANNED, errors: [] });
    else sendJson(ctx, { status: 'started' }, 202);
  },
  'GET /api/assets/seed/status': (_, { ctx }) =>
    sendJson(ctx, { state: 'IDLE', progress: null, errors: [] }),
  'POST /api/assets/seed/cancel': (_, { ctx }) => sendJson(ctx, { status: 'idle' }),
  'POST /api/assets/prune': (_, { ctx }) => sendJson(ctx, { status: 'completed', marked: 0 }),
});

const NOTHING_SCANNED = { scanned: 0, total: 0, created: 0, skipped: 0 };
const WAITS = new Set(['true', '1', 'yes']);

/** Returns the routes of the assets API. All of them answer 503 when it is switched off. */
export function assetRoutes(
  services: AssetServices,
  { assets }: { readonly assets: boolean },
): readonly V1Route[] {
  const routes = assetRoutesOf(services);
  if (assets) return routes;
  const handle = (): never => {
    throw assetError('SERVICE_DISABLED', 'This server has its assets API switched off.');
  };
  return routes.map((route) => ({ ...route, handle }));
}

async function findAsset(catalog: AssetCatalog, { caller, params }: V1Request): Promise<FileAsset> {
  const { id = '' } = params;
  const asset = await catalog.find(caller.user, id);
  if (asset === undefined) throw assetNotFound(id);
  return asset;
}

type Tags = readonly string[];

async function changeTags(
  { catalog, bodies }: AssetServices,
  request: V1Request,
  changed: (own: Tags, given: Tags) => Tags,
): Promise<{ readonly tags: Tags; readonly before: Tags; readonly after: Tags }> {
  const asset = await findAsset(catalog, request);
  const { tags: given } = await readAssetBody(request.ctx, bodies);
  if (!Array.isArray(given) || given.length === 0) throw invalidBody('tags must be a list.');
  const tags = readTags(given as Tags);
  const labelled = await changeLabels(catalog, asset.row, (labels) => ({
    ...labels,
    tags: changed(labels.tags ?? [], tags),
  }));
  return { tags, before: tagsOf(asset), after: tagsOf(labelled) };
}

async function sendStored(
  services: AssetServices,
  { ctx }: V1Request,
  { asset, isNew }: StoredAsset,
): Promise<void> {
  const body = { ...(await assetJson(services, ctx, asset)), created_new: isNew };
  sendJson(ctx, body, isNew ? 201 : 200);
}
