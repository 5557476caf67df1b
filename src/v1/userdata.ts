import { rm } from 'node:fs/promises';
import type Koa from 'koa';
import { spoolStream, tooLargeText } from '../spool.ts';
import type { SpooledFile } from '../wire/jobs.ts';
import { V1Error, emptyError, sendEmpty, sendJson } from './errors.ts';
import type { V1Request, V1Route } from './routes.ts';
import { PICTURE, servedAs } from './served-as.ts';
import { fileOf, sendFile } from './static-file.ts';
import { infoOf, userDataListings } from './userdata-lists.ts';
import { type Place, namedBelow } from './userdata-place.ts';
import type { Unchanged, UserData } from './userdata-store.ts';

/** What the user data routes need of the house. */
export type UserDataDeps = {
  readonly userData: UserData;
  readonly spoolDir: string;
  readonly maxUploadBytes: number;
};

/** Workflows and other files of a front end, kept for each user; a name is one encoded segment. */
export function userDataRoutes(deps: UserDataDeps): readonly V1Route[] {
  return [
    ...userDataListings(deps.userData),
    { method: 'GET', path: '/userdata/:file', handle: (request) => read(deps, request) },
    { method: 'POST', path: '/userdata/:file', handle: (request) => write(deps, request) },
    { method: 'DELETE', path: '/userdata/:file', handle: (request) => remove(deps, request) },
    {
      method: 'POST',
      path: '/userdata/:file/move/:dest',
      handle: (request) => move(deps, request),
    },
  ];
}

async function read({ userData }: UserDataDeps, { ctx, caller, params }: V1Request): Promise<void> {
  const path = pathOf(params['file']);
  const place = await userData.look(caller.user, path);
  if (place.kind !== 'file') throw emptyError(404, NO_FILE);
  ctx.set(headersOf(path));
  await sendFile(ctx, fileOf(userData.home(caller.user), place.path, place.stats));
}

async function write(deps: UserDataDeps, { ctx, caller, params, query }: V1Request): Promise<void> {
  const path = pathOf(params['file']);
  const how = { overwrite: query.get('overwrite') !== 'false' };
  const place = await deps.userData.look(caller.user, path);
  // Said before the body is read; what counts is whether it exists when the file is put there.
  if (place.kind === 'file' && !how.overwrite) throw refusal('exists');
  const file = await receive(deps, ctx);
  try {
    sendPlace(ctx, query, { path, place: await deps.userData.put(caller.user, path, file, how) });
  } finally {
    await rm(file.path, { force: true });
  }
}

async function remove(
  { userData }: UserDataDeps,
  { ctx, caller, params }: V1Request,
): Promise<void> {
  const unchanged = await userData.remove(caller.user, pathOf(params['file']));
  if (unchanged) throw emptyError(404, NO_FILE);
  sendEmpty(ctx, 204);
}

async function move(
  { userData }: UserDataDeps,
  { ctx, caller, params, query }: V1Request,
): Promise<void> {
  const from = pathOf(params['file']);
  const path = pathOf(params['dest']);
  const how = { overwrite: query.get('overwrite') !== 'false' };
  sendPlace(ctx, query, { path, place: await userData.move(caller.user, from, path, how) });
}

/** v1 answers the path, or what is known of the file when asked for it. */
function sendPlace(
  ctx: Koa.Context,
  query: URLSearchParams,
  { path, place }: { readonly path: string; readonly place: Place | Unchanged },
): void {
  if (typeof place === 'string') throw refusal(place);
  const wantsInfo = query.get('full_info')?.toLowerCase() === 'true';
  sendJson(ctx, wantsInfo && place.kind === 'file' ? infoOf(path, place.stats) : path);
}

/** An escape is an empty 403, as on the v1 server; what no file should be called is told in words. */
function pathOf(given = ''): string {
  const named = namedBelow(given);
  if (named.ok && named.path !== '') return named.path;
  if (!named.ok && named.why === 'outside')
    throw emptyError(403, 'This path leads out of the folder of the user.');
  throw new V1Error(400, 'This is no name for a file.');
}

const NO_FILE = 'There is no such file.';

const REFUSALS: { readonly [why in Exclude<Unchanged, 'absent'>]: readonly [number, string] } = {
  exists: [409, 'File already exists'],
  blocked: [400, 'Something that is no file is in the way.'],
  full: [507, 'There is no room left for files of this user.'],
};

function refusal(why: Unchanged): V1Error {
  return why === 'absent' ? emptyError(404, NO_FILE) : new V1Error(...REFUSALS[why]);
}

async function receive(
  { spoolDir, maxUploadBytes }: UserDataDeps,
  ctx: Koa.Context,
): Promise<SpooledFile> {
  if ((ctx.get('Content-Encoding') || 'identity').toLowerCase() !== 'identity') {
    throw new V1Error(415, 'Compressed bodies are not taken.', { headers: CLOSE });
  }
  if (Number(ctx.get('Content-Length')) > maxUploadBytes) {
    throw new V1Error(413, tooLargeText(maxUploadBytes), { headers: CLOSE });
  }
  const spooled = await spoolStream(ctx.req, { dir: spoolDir, maxBytes: maxUploadBytes });
  if (spooled.ok) return spooled.value;
  throw new V1Error(spooled.status, spooled.message, { headers: CLOSE });
}

const CLOSE = { Connection: 'close' };

/** What a browser could run is sent as bytes to be saved; style sheets are what pages ask for. */
function headersOf(path: string): { readonly [header: string]: string } {
  const filename = path.slice(path.lastIndexOf('/') + 1);
  if (filename.endsWith('.css')) return { 'Content-Type': 'text/css; charset=utf-8' };
  const file = { filename, contentType: 'application/octet-stream' };
  const { 'Content-Disposition': disposition = '', ...headers } = servedAs(file, '');
  if (disposition.startsWith('attachment'))
    return { ...headers, 'Content-Disposition': disposition };
  // Else pictures would be said to be anybody's.
  return PICTURE.test(path) ? { ...headers, 'Cache-Control': 'private, no-cache' } : headers;
}
