import { rm } from 'node:fs/promises';
import type Koa from 'koa';
import { spoolStream, tooLargeText } from '../../lib/spool.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { V1Error, emptyError, sendEmpty, sendJson } from '../../dialects/errors.ts';
import type { V1Request, V1Route } from '../routes.ts';
import { PICTURE, fileHeaders } from '../../http/file-headers.ts';
import { fileOf, sendFile } from '../../http/static-file.ts';
import { fileInfoOf, userDataListings } from './listings.ts';
import { type PathStatus, safePathBelow } from '../../files/folder-paths.ts';
import type { Unchanged, UserDataStore } from '../../files/user-data-store.ts';

/** Services of the user data routes. */
export type UserDataServices = {
  readonly userData: UserDataStore;
  readonly spoolDir: string;
  readonly maxUploadBytes: number;
};

/** Workflows and other files that a front end stores for each user; a name is one encoded segment. */
export function userDataRoutes(services: UserDataServices): readonly V1Route[] {
  return [
    ...userDataListings(services.userData),
    { method: 'GET', path: '/userdata/:file', handle: (request) => getFile(services, request) },
    { method: 'POST', path: '/userdata/:file', handle: (request) => putFile(services, request) },
    {
      method: 'DELETE',
      path: '/userdata/:file',
      handle: (request) => deleteFile(services, request),
    },
    {
      method: 'POST',
      path: '/userdata/:file/move/:dest',
      handle: (request) => moveFile(services, request),
    },
  ];
}

async function getFile(
  { userData }: UserDataServices,
  { ctx, caller, params }: V1Request,
): Promise<void> {
  const path = pathOf(params['file']);
  const status = await userData.look(caller.user, path);
  if (status.kind !== 'file') throw emptyError(404, FILE_NOT_FOUND);
  ctx.set(headersOf(path));
  await sendFile(ctx, fileOf(userData.folderFor(caller.user), status.path, status.stats));
}

async function putFile(
  services: UserDataServices,
  { ctx, caller, params, query }: V1Request,
): Promise<void> {
  const path = pathOf(params['file']);
  const how = { overwrite: query.get('overwrite') !== 'false' };
  const status = await services.userData.look(caller.user, path);
  // Refused early, before the body is read; `put` checks again when the file is moved into place.
  if (status.kind === 'file' && !how.overwrite) throw unchangedError('exists');
  const file = await receiveBody(services, ctx);
  try {
    sendFileInfo(ctx, query, {
      path,
      status: await services.userData.put(caller.user, path, file, how),
    });
  } finally {
    await rm(file.path, { force: true });
  }
}

async function deleteFile(
  { userData }: UserDataServices,
  { ctx, caller, params }: V1Request,
): Promise<void> {
  const unchanged = await userData.remove(caller.user, pathOf(params['file']));
  if (unchanged) throw emptyError(404, FILE_NOT_FOUND);
  sendEmpty(ctx, 204);
}

async function moveFile(
  { userData }: UserDataServices,
  { ctx, caller, params, query }: V1Request,
): Promise<void> {
  const from = pathOf(params['file']);
  const path = pathOf(params['dest']);
  const how = { overwrite: query.get('overwrite') !== 'false' };
  sendFileInfo(ctx, query, { path, status: await userData.move(caller.user, from, path, how) });
}

/** v1 answers the path, or what is known of the file when asked for it. */
function sendFileInfo(
  ctx: Koa.Context,
  query: URLSearchParams,
  { path, status }: { readonly path: string; readonly status: PathStatus | Unchanged },
): void {
  if (typeof status === 'string') throw unchangedError(status);
  const wantsInfo = query.get('full_info')?.toLowerCase() === 'true';
  sendJson(ctx, wantsInfo && status.kind === 'file' ? fileInfoOf(path, status.stats) : path);
}

/** A path outside the folder is an empty 403, as on the v1 server; an unsafe name is a 400 with a message. */
function pathOf(encodedName = ''): string {
  const safePath = safePathBelow(encodedName);
  if (safePath.ok && safePath.path !== '') return safePath.path;
  if (!safePath.ok && safePath.reason === 'outside')
    throw emptyError(403, 'This path leads out of the folder of the user.');
  throw new V1Error(400, 'This is no name for a file.');
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
  { spoolDir, maxUploadBytes }: UserDataServices,
  ctx: Koa.Context,
): Promise<SpooledFile> {
  if ((ctx.get('Content-Encoding') || 'identity').toLowerCase() !== 'identity') {
    throw new V1Error(415, 'Compressed bodies are not taken.', { headers: CLOSE_CONNECTION });
  }
  if (Number(ctx.get('Content-Length')) > maxUploadBytes) {
    throw new V1Error(413, tooLargeText(maxUploadBytes), { headers: CLOSE_CONNECTION });
  }
  const spooled = await spoolStream(ctx.req, { dir: spoolDir, maxBytes: maxUploadBytes });
  if (spooled.ok) return spooled.value;
  throw new V1Error(spooled.status, spooled.message, { headers: CLOSE_CONNECTION });
}

const CLOSE_CONNECTION = { Connection: 'close' };

/** Files that a browser could run are sent as an attachment; style sheets are served as such, since pages load them. */
function headersOf(path: string): { readonly [header: string]: string } {
  const filename = path.slice(path.lastIndexOf('/') + 1);
  if (filename.endsWith('.css')) return { 'Content-Type': 'text/css; charset=utf-8' };
  const file = { filename, contentType: 'application/octet-stream' };
  const { 'Content-Disposition': disposition = '', ...headers } = fileHeaders(file, '');
  if (disposition.startsWith('attachment'))
    return { ...headers, 'Content-Disposition': disposition };
  // Without this header pictures would get `Cache-Control: public`.
  return PICTURE.test(path) ? { ...headers, 'Cache-Control': 'private, no-cache' } : headers;
}
