import { lstat, readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SettingStore } from '../../ledger/ledger.ts';
import { pathOf } from '../../files/asset-catalog.ts';
import { safePathBelow } from '../../files/folder-paths.ts';
import { isJsonObject, parseJson, stringifyJson } from '../../protocol/json.ts';
import type { FileCopier } from './copy.ts';
import type { FilesImportResult } from './files.ts';
import { type FoundFile, type Scan, reasonOf, scan } from './scan.ts';
import type { UserFiles } from './user-files.ts';

/** The outcome of importing the settings and saved files of one user. */
export type UserImportResult = Omit<FilesImportResult, 'bytes'> & {
  settings: number;
  /** The number of settings that the user already has here, perhaps with another value. */
  keptSettings: number;
};

type UserImportOptions = {
  readonly settings: SettingStore;
  readonly copy: FileCopier;
  readonly user: string;
  readonly userFiles: UserFiles;
  /** The name of the user's folder in the report. */
  readonly label: string;
  readonly onFile: (file: FoundFile) => void;
};

const SETTINGS = 'comfy.settings.json';
const MOST_SETTINGS_BYTES = 16 * 1024 * 1024;

/** A user of the v1 server: the name of the folder, and the name that people see. */
export type Account = { readonly id: string; readonly name: string };

/** Returns the users that have a folder. Without multi-user mode this is only `default`. */
export async function accountsIn(folder: string): Promise<readonly Account[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = await namesIn(folder);
  return entries
    .filter((entry) => entry.isDirectory() && /^[^_.]/.test(entry.name))
    .map(({ name: id }) => ({ id, name: names.get(id) ?? id }));
}

/** Finds the files of a user. Leaves out the settings, which the ledger has here. */
export async function scanUserFolder(folder: string, label: string): Promise<Scan> {
  // Front ends store lists under names that begin with a dot.
  const isKeptName = (name: string): boolean => safePathBelow(name).ok;
  const scanned = await scan(folder, label, { maxBytes: Infinity, isKeptName });
  const found = scanned.found.filter((file) => pathOf(file) !== SETTINGS);
  return { ...scanned, found };
}

/** Imports the settings and files of a user. Never changes settings and files that the user already has here. */
export async function importUser(
  deps: UserImportOptions,
  folder: string,
  { found, leftOut, failed }: Scan,
): Promise<UserImportResult> {
  const result = { settings: 0, keptSettings: 0, files: 0, known: 0, leftOut, failed };
  await importSettings(deps, join(folder, SETTINGS), result);
  for (const file of found) {
    await importFile(deps, file, result);
    deps.onFile(file);
  }
  return result;
}

async function importSettings(
  { settings, user, label }: UserImportOptions,
  path: string,
  result: UserImportResult,
): Promise<void> {
  const given = await readSettings(path);
  if (typeof given === 'string')
    return void result.failed.push({ name: `${label}/${SETTINGS}`, why: given });
  const existingSettings = await settings.all(user);
  const newSettings = Object.entries(given).filter(([id]) => !Object.hasOwn(existingSettings, id));
  result.settings = newSettings.length;
  result.keptSettings = Object.keys(given).length - newSettings.length;
  await settings.merge(user, Object.fromEntries(newSettings));
}

/**
 * Returns the settings as JSON texts, by id, or the reason why they cannot be read. Returns none when the file does
 * not exist.
 */
async function readSettings(path: string): Promise<{ readonly [id: string]: string } | string> {
  try {
    const stats = await lstat(path).catch(() => undefined);
    if (stats === undefined) return {};
    if (!stats.isFile() || stats.size > MOST_SETTINGS_BYTES) return 'is no settings file';
    const value = parseJson(await readFile(path, 'utf8'));
    if (!isJsonObject(value)) return 'is no settings file';
    return Object.fromEntries(
      Object.entries(value).map(([id, setting]) => [id, stringifyJson(setting)]),
    );
  } catch (error) {
    return error instanceof SyntaxError ? 'is no JSON' : reasonOf(error);
  }
}

async function importFile(
  deps: UserImportOptions,
  file: FoundFile,
  result: UserImportResult,
): Promise<void> {
  const path = pathOf(file);
  const name = `${deps.label}/${path}`;
  const leaveOut = (why: string): void => void result.leftOut.push({ name, why });
  const safePath = safePathBelow(path);
  if (!safePath.ok) return leaveOut('unsafe name');
  const { userFiles } = deps;
  const target = await userFiles.look(safePath.path);
  if (target.kind === 'file' && (await userFiles.isSame(safePath.path, target.stats, file)))
    return void result.known++;
  if (target.kind !== 'absent') return leaveOut('something of this name is here already');
  const copied = await deps.copy(file);
  if (!copied.ok) return void result.failed.push({ name, why: copied.why });
  await userFiles.put(safePath.path, copied.file, file);
  result.files++;
}

/** Returns the names of users by their ids, from `users.json`, which exists in multi-user mode only. */
async function namesIn(folder: string): Promise<ReadonlyMap<string, string>> {
  try {
    const value = parseJson(await readFile(join(folder, 'users.json'), 'utf8'));
    const entries = isJsonObject(value) ? Object.entries(value) : [];
    return new Map(entries.map(([id, name]) => [id, typeof name === 'string' ? name : id]));
  } catch {
    return new Map();
  }
}
