import { rm } from 'node:fs/promises';
import type Koa from 'koa';
import { spoolStream } from '../../lib/spool.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { V1Error, emptyError, plainError, sendEmpty, sendJson } from '../../dialects/errors.ts';
import { bodyErrorText } from '../routing/body.ts';
import { type V1Request, routesFor } from '../routes.ts';
import { fileHeaders, isNotModified } from '../../http/file-headers.ts';
import { fileOf, sendFile } from '../../http/static-file.ts';
import { refusedByHeaders, stopUnpacking, unpackedBody } from '../../http/unpacked-body.ts';
import {
  type FileStats,
  type FolderEntry,
  type PathStatus,
  safePathBelow,
} from '../../files/folder-paths.ts';
import type { Unchanged, UserDataStore } from '../../files/user-data-store.ts';
import type { Readable } from 'node:stream';
import type { Json, JsonObject } from '../../protocol/json.ts';
import type { FormLimits } from '../../http/received-form.ts';
import { withinRoot } from '../../files/safe-name.ts';

/** Services of the user data routes. */
export type UserDataServices = {
  readonly userData: UserDataStore;
  readonly uploads: FormLimits;
};

/**
 * Workflows and other files that a front end stores for each user. The name is one encoded segment
 * of the path.
 */
export const userDataRoutes = routesFor<UserDataServices>({
  async 'GET /userdata'({ userData }, { ctx, caller, query }) {
    const dir = query.get('dir');
    if (dir === null || dir === '') throw new V1Error(400, 'Directory not provided');
    if (withinRoot(dir) === undefined) throw new V1Error(403, 'Invalid directory');
    const path = await folderOf(userData, caller.user, dir);
    if (path === 'a file') return sendJson(ctx, []);
    if (path === undefined) throw new V1Error(404, 'Directory not found');
    const depth = isTrue(query, 'recurse') ? 'all' : 'this folder';
    const entries = await userData.list(caller.user, path.inside, { depth });
    sendJson(ctx, entries.filter(isVisible).map(entryForm(query)));
  },
  async 'GET /v2/userdata'({ userData }, { ctx, caller, query }) {
    const requestedPath = query.get('path') ?? '';
    if (withinRoot(requestedPath) === undefined) throw new V1Error(400, 'Invalid path requested');
    const path = await folderOf(userData, caller.user, requestedPath);
    if (path === undefined && requestedPath === '') return sendJson(ctx, []);
    if (path === 'a file') throw new V1Error(400, 'Requested path is not a directory');
    if (path === undefined) throw new V1Error(404, 'Requested path not found');
    const entries = await userData.list(caller.user, path.inside, { depth: 'all' });
    const folders = entries.filter(({ isFolder }) => isFolder).toSorted(byName);
    const files = entries.filter(({ isFolder }) => !isFolder).toSorted(byName);
    sendJson(
      ctx,
      [...folders, ...files].map((entry) => treeRowOf(path.inside, entry)),
    );
  },
  async 'GET /userdata/:file'({ userData }, { ctx, caller, params }) {
    const path = pathOf(params['file']);
    const status = await userData.look(caller.user, path);
    if (status.kind === 'folder') throw emptyError(403, 'This is a folder.');
    if (status.kind !== 'file') throw emptyError(404, FILE_NOT_FOUND);
    ctx.set(headersOf(path));
    if (userData.content) return sendObject(ctx, status, await userData.content(caller.user, path));
    await sendFile(ctx, fileOf(userData.folderFor(caller.user), status.path, status.stats));
  },
  async 'POST /userdata/:file'(services, request) {
    const { ctx, caller, params, query } = request;
    const path = pathOf(params['file']);
    const how = { overwrite: query.get('overwrite') !== 'false' };
    const status = await services.userData.look(caller.user, path);
    // Refused before the body is read. `put` checks again when the file is moved into place.
    if (status.kind === 'file' && !how.overwrite) throw unchangedError('exists');
    const file = await receiveBody(services, request);
    try {
      sendFileInfo(ctx, query, {
        path,
        status: await services.userData.put(caller.user, path, file, how),
      });
    } finally {
      await rm(file.path, { force: true });
    }
  },
  async 'DELETE /userdata/:file'({ userData }, { ctx, caller, params }) {
    const unchanged = await userData.remove(caller.user, pathOf(params['file']));
    if (unchanged) throw emptyError(404, FILE_NOT_FOUND);
    sendEmpty(ctx, 204);
  },
  async 'POST /userdata/:file/move/:dest'({ userData }, { ctx, caller, params, query }) {
    const from = pathOf(params['file']);
    const path = pathOf(params['dest']);
    const how = { overwrite: query.get('overwrite') !== 'false' };
    sendFileInfo(ctx, query, { path, status: await userData.move(caller.user, from, path, how) });
  },
});

/** Sends the whole file with a validator: front ends read such a file with one call. */
function sendObject(
  ctx: Koa.Context,
  { path, stats }: Extract<PathStatus, { kind: 'file' }>,
  stream: Readable | undefined,
): void {
  if (stream === undefined) throw emptyError(404, FILE_NOT_FOUND);
  if (isNotModified(ctx, fileOf('', path, stats))) return void stream.destroy();
  ctx.set('Content-Length', String(stats.size));
  ctx.body = stream;
}

/** Answers with the path, or with the facts of the file when the client asked for them. */
function sendFileInfo(
  ctx: Koa.Context,
  query: URLSearchParams,
  { path, status }: { readonly path: string; readonly status: PathStatus | Unchanged },
): void {
  if (typeof status === 'string') throw unchangedError(status);
  const wantsInfo = query.get('full_info')?.toLowerCase() === 'true';
  sendJson(ctx, wantsInfo && status.kind === 'file' ? fileInfoOf(path, status.stats) : path);
}

/**
 * Returns the path. Proxies that decode make clients encode a slash twice. A path outside the folder
 * is an empty 403, as on the v1 server; an unsafe name is a 400.
 */
function pathOf(encodedName = ''): string {
  const safePath = safePathBelow(encodedName.replaceAll(/%2f/gi, '/'));
  if (safePath.ok && safePath.path !== '') return safePath.path;
  if (!safePath.ok && safePath.reason === 'outside')
    throw emptyError(403, 'This path leads out of the folder of the user.');
  throw new V1Error(400, plainError('invalid_name', 'This is no name for a file.'));
}

const FILE_NOT_FOUND = 'There is no such file.';

const UNCHANGED_ERRORS: {
  readonly [why in Exclude<Unchanged, 'absent'>]: readonly [number, string];
} = {
  exists: [409, 'File already exists'],
  blocked: [400, 'Something that is no file is in the way.'],
  full: [507, 'There is no room left for files of this user.'],
};

function unchangedError(why: Unchanged): V1Error {
  return why === 'absent' ? emptyError(404, FILE_NOT_FOUND) : new V1Error(...UNCHANGED_ERRORS[why]);
}

async function receiveBody(
  { uploads: { spoolDir: dir, maxUploadBytes: maxBytes, limitUploads } }: UserDataServices,
  { ctx: { req }, caller }: V1Request,
): Promise<SpooledFile> {
  const receive = async () => {
    const body = unpackedBody(req);
    const spooled = await spoolStream(body, { dir, maxBytes });
    if (!spooled.ok) stopUnpacking(body, req);
    return spooled;
  };
  const received = refusedByHeaders(req, maxBytes) ?? (await limitUploads(caller.user, receive));
  if (received.ok) return received.value;
  throw bodyErrorText(received);
}

/** Returns the headers of a file: an attachment, but for the style sheet that front ends load. */
function headersOf(path: string): { readonly [header: string]: string } {
  if (path === 'user.css') return { 'Content-Type': 'text/css', 'Content-Disposition': 'inline' };
  const file = { filename: path, contentType: 'application/octet-stream' };
  return { ...fileHeaders(file, ''), 'Content-Disposition': 'attachment' };
}

/** Returns the fields that v1 gives for a file. Times are whole milliseconds. */
function fileInfoOf(path: string, stats: FileStats): JsonObject {
  return {
    path,
    size: stats.size,
    modified: Math.trunc(stats.mtimeMs),
    created: Math.trunc(stats.ctimeMs),
  };
}

/** Returns the path of an existing folder. A client may have put a slash at its end. */
async function folderOf(
  userData: UserDataStore,
  user: string,
  requestedPath: string,
): Promise<{ readonly inside: string } | 'a file' | undefined> {
  const path = withinRoot(requestedPath) === '' ? '' : safePathBelow(requestedPath);
  const inside = typeof path === 'string' ? path : path.ok ? path.path : undefined;
  if (inside === undefined) return undefined;
  const { kind } = await userData.look(user, inside);
  if (kind === 'file') return 'a file';
  return kind === 'folder' ? { inside } : undefined;
}

/** True for an entry that v1 lists: a file that is not hidden and not in a hidden folder. */
function isVisible({ path, isFolder }: FolderEntry): boolean {
  return !isFolder && !path.split('/').some((part) => part.startsWith('.'));
}

/** Returns the form of the entries. `full_info` wins over `split`, as on the v1 server. */
function entryForm(query: URLSearchParams): (entry: FolderEntry) => Json {
  if (isTrue(query, 'full_info')) return ({ path, stats }) => fileInfoOf(path, stats);
  if (isTrue(query, 'split')) return ({ path }) => [path, ...path.split('/')];
  return ({ path }) => path;
}

/**
 * Returns a row of the tree. Paths start at the root of the whole tree, wherever the listing
 * begins. Times are in seconds here.
 */
function treeRowOf(listedFolder: string, { path, name, isFolder, stats }: FolderEntry): JsonObject {
  const fullPath = listedFolder === '' ? path : `${listedFolder}/${path}`;
  if (isFolder) return { name, path: fullPath, type: 'directory' };
  const modified = stats.mtimeMs / 1000;
  return { name, path: fullPath, type: 'file', size: stats.size, modified };
}

function byName(a: FolderEntry, b: FolderEntry): number {
  const [left, right] = [a.name.toLowerCase(), b.name.toLowerCase()];
  return left < right ? -1 : Number(left > right);
}

function isTrue(query: URLSearchParams, name: string): boolean {
  return query.get(name)?.toLowerCase() === 'true';
}
