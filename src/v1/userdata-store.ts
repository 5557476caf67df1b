import { createHash } from 'node:crypto';
import { lstat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { LRUCache } from 'lru-cache';
import { adoptFile } from '../spool.ts';
import type { SpooledFile } from '../wire/jobs.ts';
import { type Entry, type Place, entriesBelow, look } from './userdata-place.ts';

/** Why nothing was changed; `blocked`: something else than a file is, or would be, in the way. */
export type Unchanged = 'absent' | 'exists' | 'blocked' | 'full';

/** Files of users below one folder: each user sees nothing but their own. */
export type UserData = {
  look(user: string, path: string): Promise<Place>;
  list(
    user: string,
    path: string,
    options: { readonly depth: 'this folder' | 'all' },
  ): Promise<readonly Entry[]>;
  /** Moves the spooled file to its place: whole and for good before this resolves. */
  put(user: string, path: string, file: SpooledFile, how: Overwrite): Promise<Place | Unchanged>;
  remove(user: string, path: string): Promise<Unchanged | undefined>;
  move(user: string, from: string, to: string, how: Overwrite): Promise<Place | Unchanged>;
  /** The folder nothing of this user leaves. */
  home(user: string): string;
};

type Overwrite = { readonly overwrite: boolean };

/** Where a file is to be. */
type Aim = { readonly path: string; readonly how: Overwrite };

type Usage = { bytes: number; entries: number };

/** Folders count: they cannot be removed by a client. */
const MAX_ENTRIES = 20_000;
const USAGES_KEPT = 1000;
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT']);

export function createUserData(options: {
  readonly root: string;
  readonly quotaBytes: number;
}): UserData {
  const root = resolve(options.root);
  const inTurn = createTurns();
  const usages = new LRUCache<string, Usage>({ max: USAGES_KEPT });

  function home(user: string): string {
    return join(root, folderOf(user));
  }

  async function usageOf(user: string): Promise<Usage> {
    const known = usages.get(user);
    if (known) return known;
    const entries = await entriesBelow(home(user), { depth: 'all' });
    const bytes = entries.reduce(
      (sum, { stats, isFolder }) => sum + (isFolder ? 0 : stats.size),
      0,
    );
    const usage = { bytes, entries: entries.length };
    usages.set(user, usage);
    return usage;
  }

  async function hasRoom(user: string, path: string, growth: number): Promise<boolean> {
    const { bytes, entries } = await usageOf(user);
    return bytes + growth <= options.quotaBytes && entries + path.split('/').length <= MAX_ENTRIES;
  }

  /** Counted anew when next asked for: a change may have made folders, or come half-way. */
  async function adopt(user: string, file: Pick<SpooledFile, 'path'>, { path, how }: Aim) {
    try {
      // Another process may have put a file there since this one looked.
      const end = await adoptFile(file, path, how.overwrite ? 'replace' : 'keep');
      if (end === 'taken') return 'exists';
      return { kind: 'file' as const, path, stats: await lstat(path) };
    } catch (error) {
      if (NO_ROOM.has(codeOf(error))) return 'full';
      throw error;
    } finally {
      usages.delete(user);
    }
  }

  async function put(user: string, path: string, file: SpooledFile, how: Overwrite) {
    const target = await look(home(user), path);
    const refused = whyNot(target, how);
    if (refused) return refused;
    const before = target.kind === 'file' ? target.stats.size : 0;
    if (!(await hasRoom(user, path, file.sizeBytes - before))) return 'full';
    return adopt(user, file, { path: target.path, how });
  }

  async function move(user: string, from: string, to: string, how: Overwrite) {
    const source = await look(home(user), from);
    if (source.kind !== 'file') return source.kind === 'blocked' ? 'blocked' : 'absent';
    const target = await look(home(user), to);
    const refused = whyNot(target, how);
    if (refused) return refused;
    if (!(await hasRoom(user, to, 0))) return 'full';
    try {
      return await adopt(user, source, { path: target.path, how });
    } catch (error) {
      // Moved or removed at another process.
      if (codeOf(error) === 'ENOENT') return 'absent';
      throw error;
    }
  }

  async function remove(user: string, path: string): Promise<Unchanged | undefined> {
    const target = await look(home(user), path);
    if (target.kind !== 'file') return target.kind === 'blocked' ? 'blocked' : 'absent';
    try {
      await unlink(target.path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      return 'absent';
    } finally {
      usages.delete(user);
    }
    return undefined;
  }

  return {
    home,
    look: (user, path) => look(home(user), path),
    list: (user, path, how) => entriesBelow(join(home(user), path), how),
    put: (user, ...rest) => inTurn(user, () => put(user, ...rest)),
    move: (user, ...rest) => inTurn(user, () => move(user, ...rest)),
    remove: (user, path) => inTurn(user, () => remove(user, path)),
  };
}

function whyNot(target: Place, { overwrite }: Overwrite): Unchanged | undefined {
  if (target.kind === 'file') return overwrite ? undefined : 'exists';
  return target.kind === 'absent' ? undefined : 'blocked';
}

/** Users are told apart by hex digests and plain words; anything else is digested too. */
function folderOf(user: string): string {
  if (/^\w{1,64}$/.test(user)) return user;
  return `_${createHash('sha256').update(user).digest('hex')}`;
}

/** Runs the changes of one user one after the other; other processes change them meanwhile. */
function createTurns(): <T>(user: string, task: () => Promise<T>) => Promise<T> {
  const tails = new Map<string, Promise<unknown>>();
  return async (user, task) => {
    const run = (tails.get(user) ?? Promise.resolve()).then(task);
    const tail = run.then(noop, noop);
    tails.set(user, tail);
    try {
      return await run;
    } finally {
      if (tails.get(user) === tail) tails.delete(user);
    }
  };
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}

function noop(): void {}
