import type Koa from 'koa';
import type { PublicAddresses } from '../../http/public-address.ts';
import type { FileRow, FileStore } from '../../ledger/ledger.ts';
import { hasControlCharacter } from '../../protocol/control-characters.ts';
import type { Caller, AssetCalls } from '../../protocol/job-api.ts';
import { rulesFor, viewRuleFor } from '../../dialects/dialect.ts';
import {
  type Download,
  upstreamLinkOf,
  sendLocation,
  serveFile,
  serveRendered,
} from './download.ts';
import { toLookupPath } from '../../protocol/v1.ts';
import { V1Error, emptyError, plainError } from '../../dialects/errors.ts';
import type { Pictures, Rendering } from '../../files/pictures.ts';
import { readRendering, type ChannelRule } from './render.ts';
import type { V1Request } from '../routes.ts';
import {
  parseAnnotation,
  isFileType,
  safeName,
  splitPath,
  withinRoot,
} from '../../files/safe-name.ts';
import { fileByHash, newestNamed } from '../../files/asset-catalog.ts';
import { uploadByContentName } from '../../files/resolve-files.ts';
import { isPageCall } from '../../auth/calling-client.ts';
import { SIGNED_VIEW_PATH, type ViewSigner } from '../../auth/signed-view.ts';

/** Services of the download routes. */
export type ViewServices = {
  readonly jobs: AssetCalls;
  readonly files: FileStore;
  /** `auto`: `/api/view` redirects all callers but browsers, `/view` streams. */
  readonly view: 'auto' | 'redirect' | 'stream';
  readonly links: ViewLinks;
  readonly pictures: Pictures;
};

/** The services that make links to files. */
type ViewLinks = {
  readonly signer: ViewSigner;
  /** The addresses at which callers reach the server. */
  readonly addresses: PublicAddresses;
  /**
   * Returns a link to the stored bytes, where the store has links; `undefined`: there is none of
   * this file.
   */
  readonly linkToStored?: (
    caller: Caller,
    file: { readonly row: FileRow; readonly fetchDest: string },
  ) => Promise<string | undefined>;
  /** Returns the caller that a signed link was made for, with the key if it is still in memory. */
  readonly callerOf?: (user: string) => Caller;
};

/** Matches `file:///x` and `C:/x`, which are locations and no names. */
const URL_OR_DRIVE = /^[a-z][\w+.-]*:[\\/]/i;

/** `GET /view` */
export async function view(services: ViewServices, request: V1Request): Promise<void> {
  const { ctx, caller, query } = request;
  const rules = rulesFor(ctx);
  const row = await findFile(services.files, request);
  const rendering = readRendering(query, rules);
  const download = { ctx, caller, row };
  const address = services.links.addresses.of(ctx.req);
  if (!address || !shouldRedirect(services.view, ctx, query))
    return serveView(services, download, rendering);
  ctx.vary('Sec-Fetch-Site, Sec-Fetch-Dest, Comfy-User');
  // A rendered picture exists only here, so there is no link to it.
  const location = rendering ? undefined : await locationElsewhere(services, download);
  if (location !== undefined) return sendLocation(ctx, location);
  // The link stays on this host and below the caller's `/api`: proxies may forward no other path.
  const prefix = ctx.state.apiPrefixed ? '/api' : '';
  const link = services.links.signer.sign({ ...row, rendering: renderingFor(query, rules) });
  sendLocation(ctx, `${address.base}${prefix}${SIGNED_VIEW_PATH}?${link}`);
}

async function locationElsewhere(
  { jobs, links: { linkToStored } }: ViewServices,
  download: Download,
): Promise<string | undefined> {
  const { ctx, caller, row } = download;
  const fetchDest = ctx.get('Sec-Fetch-Dest').toLowerCase();
  const stored = await linkToStored?.(caller, { row, fetchDest });
  return stored ?? (await upstreamLinkOf(jobs, download));
}

/** The rules of signed links, which are the same in both dialects. */
const RULES_OF_LINKS = { alphaChannel: 'a' } as const;

/** `GET /signed/view`: serves a link made by `/api/view` to any holder until it expires. */
export async function serveSignedView(services: ViewServices, ctx: Koa.Context): Promise<void> {
  const query = new URLSearchParams(ctx.querystring);
  const grant = services.links.signer.verify(query);
  if (grant === undefined)
    throw new V1Error(403, plainError('link_expired', 'This link has expired or was altered.'));
  const named = await services.files.get(grant.user, grant);
  if (named === undefined) throw emptyError(404, FILE_NOT_FOUND);
  // The name may be that of another file now.
  const replaced = { ...grant, hash: null, sizeBytes: 0, contentType: '', modifiedAtMs: 0 };
  const row = named.assetId === grant.assetId ? named : replaced;
  const caller = services.links.callerOf?.(grant.user) ?? { user: grant.user };
  try {
    await serveView(services, { ctx, caller, row }, readRendering(query, RULES_OF_LINKS));
  } catch (error) {
    throw caller.credential === undefined ? expiredLinkError(error) : error;
  }
}

/**
 * Returns the error of a link without a key. Keys are never stored: after a restart there is none
 * for the upstream until the owner calls.
 */
function expiredLinkError(error: unknown): unknown {
  if (!(error instanceof V1Error) || (error.status !== 401 && error.status !== 403)) return error;
  const message = 'This link is no longer valid: its owner has to ask for a new one.';
  return new V1Error(403, plainError('link_expired', message));
}

/**
 * Finds the file with v1's checks in v1's order. 400: no name, an impossible name or a bad type.
 * 403: a folder outside. A directory in the name is dropped. 404: no such file. A name that no file
 * can have is 400 as well.
 */
async function findFile(
  files: FileStore,
  { ctx, caller: { user }, query }: V1Request,
): Promise<FileRow> {
  const { subfolder: folderRule, viewWithoutName } = rulesFor(ctx);
  // The hosted service keeps no folders: it ignores `subfolder`.
  const ignoresFolders = folderRule === 'ignored';
  const filenameGiven = query.get('filename');
  if (filenameGiven === null)
    throw emptyError(viewWithoutName === 'not-found' ? 404 : 400, '"filename" is missing.');
  const { name, type = query.get('type') ?? 'output' } = parseAnnotation(filenameGiven);
  const path = toLookupPath(name);
  if (name === '' || path.startsWith('/') || name.includes('..') || URL_OR_DRIVE.test(name)) {
    throw emptyError(400, '"filename" is not a possible file name.');
  }
  const withHash = await fileByHash(files, user, name);
  if (withHash !== undefined) return withHash;
  if (!isFileType(type)) throw emptyError(400, '"type" must be input, temp or output.');
  const resolvedFolder = withinRoot(toLookupPath(query.get('subfolder') ?? ''));
  if (resolvedFolder === undefined && !ignoresFolders)
    throw emptyError(403, '"subfolder" is outside.');
  const subfolder = resolvedFolder ?? '';
  const filename = splitPath(path).name;
  const row =
    (await files.get(user, { type, subfolder, filename })) ??
    (await uploadByContentName(files, user, { type, filename })) ??
    (ignoresFolders ? await newestNamed(files, user, { type, filename }) : undefined);
  if (row !== undefined) return row;
  const isPossible = filename === '' || safeName(filename) !== undefined;
  if (isPossible && isWellEncoded(ctx.querystring)) throw emptyError(404, FILE_NOT_FOUND);
  throw emptyError(400, '"filename" is not a possible file name.');
}

/**
 * True when the query is encoded well. Clients that forget to encode still find `100%.png`; the `%`
 * is blamed only for a name that is not found.
 */
function isWellEncoded(querystring: string): boolean {
  const isHalf = /%(?![0-9a-f]{2})/i.test(querystring);
  return !isHalf && !hasControlCharacter(querystring, 'encoded again');
}

const FILE_NOT_FOUND = 'There is no such file.';

/** True when the caller is redirected: `--view` decides, else the dialect. */
function shouldRedirect(
  mode: ViewServices['view'],
  ctx: Koa.Context,
  query: URLSearchParams,
): boolean {
  if (mode === 'stream') return false;
  if (mode === 'redirect') return true;
  const rule = viewRuleFor(ctx);
  // The hosted service answers 200 when it extracts a channel.
  if (rule === 'redirect') return !query.has('channel');
  return rule === 'redirect-except-browsers' && !isPageCall(ctx.req);
}

/** Returns the rendering that a link shows, in the words of `RULES_OF_LINKS`. */
function renderingFor(query: URLSearchParams, { alphaChannel }: ChannelRule) {
  const rendering = Object.fromEntries(query);
  const isAlpha = rendering['channel'] === 'alpha' && alphaChannel === 'a-or-alpha';
  return isAlpha ? { ...rendering, channel: 'a' } : rendering;
}

async function serveView(
  services: ViewServices,
  download: Download,
  rendering: Rendering | undefined,
): Promise<void> {
  if (rendering === undefined) return serveFile(services.jobs, download);
  await serveRendered(services, download, rendering);
}
