import type { Stats } from 'node:fs';
import type { Json, JsonObject } from '../../protocol/json.ts';
import { V1Error, sendJson } from '../../dialects/errors.ts';
import type { V1Request, V1Route } from '../routes.ts';
import { withinRoot } from '../../files/safe-name.ts';
import { type FolderEntry, safePathBelow } from '../../files/folder-paths.ts';
import type { UserDataStore } from '../../files/user-data-store.ts';

/** The two listings of a user's files: v1's own, and the one of its newer namesake. */
export function userDataListings(userData: UserDataStore): readonly V1Route[] {
  return [
    { method: 'GET', path: '/userdata', handle: (request) => listFiles(userData, request) },
    { method: 'GET', path: '/v2/userdata', handle: (request) => listTree(userData, request) },
  ];
}

/** The fields v1 gives for a file; times are seconds, as in Python. */
export function fileInfoOf(path: string, stats: Stats): JsonObject {
  return {
    path,
    size: stats.size,
    modified: stats.mtimeMs / 1000,
    created: stats.ctimeMs / 1000,
  };
}

async function listFiles(
  userData: UserDataStore,
  { ctx, caller, query }: V1Request,
): Promise<void> {
  const dir = query.get('dir');
  if (dir === null || dir === '') throw new V1Error(400, 'Directory not provided');
  if (withinRoot(dir) === undefined) throw new V1Error(403, 'Invalid directory');
  const path = await folderOf(userData, caller.user, dir);
  if (path === undefined) throw new V1Error(404, 'Directory not found');
  const depth = isTrue(query, 'recurse') ? 'all' : 'this folder';
  const entries = await userData.list(caller.user, path, { depth });
  sendJson(ctx, entries.filter(isVisible).map(entryForm(query)));
}

async function listTree(userData: UserDataStore, { ctx, caller, query }: V1Request): Promise<void> {
  const requestedPath = query.get('path') ?? '';
  if (withinRoot(requestedPath) === undefined) throw new V1Error(400, 'Invalid path requested');
  const path = await folderOf(userData, caller.user, requestedPath);
  if (path === undefined && requestedPath === '') return sendJson(ctx, []);
  if (path === undefined) throw new V1Error(404, 'Requested path not found');
  const entries = await userData.list(caller.user, path, { depth: 'all' });
  const folders = entries.filter(({ isFolder }) => isFolder).toSorted(byName);
  const files = entries.filter(({ isFolder }) => !isFolder).toSorted(byName);
  sendJson(
    ctx,
    [...folders, ...files].map((entry) => treeRowOf(path, entry)),
  );
}

/** The path of a folder that is there; a client may have put a slash at its end. */
async function folderOf(
  userData: UserDataStore,
  user: string,
  requestedPath: string,
): Promise<string | undefined> {
  const path = withinRoot(requestedPath) === '' ? '' : safePathBelow(requestedPath);
  const inside = typeof path === 'string' ? path : path.ok ? path.path : undefined;
  if (inside === undefined) return undefined;
  const { kind } = await userData.look(user, inside);
  return kind === 'folder' ? inside : undefined;
}

/** v1 lists files only, and neither what is hidden nor what lies in hidden folders. */
function isVisible({ path, isFolder }: FolderEntry): boolean {
  return !isFolder && !path.split('/').some((part) => part.startsWith('.'));
}

/** `full_info` wins over `split`, as on the v1 server. */
function entryForm(query: URLSearchParams): (entry: FolderEntry) => Json {
  if (isTrue(query, 'full_info')) return ({ path, stats }) => fileInfoOf(path, stats);
  if (isTrue(query, 'split')) return ({ path }) => [path, ...path.split('/')];
  return ({ path }) => path;
}

/** Paths are those of the whole tree, wherever the listing begins. */
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
