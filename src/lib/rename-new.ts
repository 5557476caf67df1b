import { link, mkdir, open, rename, rm, unlink } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { syncPath } from './durability.ts';

/** The errors of file systems without hard links. */
const NO_HARD_LINK_CODES = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
  'EACCES',
]);

/** `linked`: the file also has its old name. */
export type RenameOutcome = 'linked' | 'renamed' | 'taken';

/**
 * Gives a file an unused name atomically, even when other processes or machines want the same name.
 */
export async function linkOrRenameNew(from: string, to: string): Promise<RenameOutcome> {
  try {
    await link(from, to);
    return 'linked';
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return 'taken';
    if (!NO_HARD_LINK_CODES.has(codeOf(error))) throw error;
    return await renameReserved(from, to);
  }
}

/** Moves a file to an unused name. */
async function renameNew(from: string, to: string): Promise<Exclude<RenameOutcome, 'linked'>> {
  const outcome = await linkOrRenameNew(from, to);
  if (outcome !== 'linked') return outcome;
  try {
    await unlink(from);
    return 'renamed';
  } catch (error) {
    // The process that removed the old name meanwhile was told that the file is its own, or gone.
    await rm(to, { force: true });
    throw error;
  }
}

/** Moves a spooled file to its final name. The move is on disk when this resolves. */
export async function moveIntoPlace(
  file: { readonly path: string },
  target: string,
  existing: 'keep' | 'replace' = 'replace',
): Promise<'adopted' | 'taken'> {
  const folder = dirname(resolve(target));
  const createdFolder = await mkdir(folder, { recursive: true, mode: 0o700 });
  await syncPath(file.path);
  if (existing === 'replace') await rename(file.path, target);
  else if ((await renameNew(file.path, target)) === 'taken') return 'taken';
  // A new folder is durable only when its parent folder is synced.
  const top = createdFolder === undefined ? folder : dirname(resolve(createdFolder));
  for (let at = folder; at.length >= top.length; at = dirname(at)) {
    await syncPath(at);
    if (at === top) break;
  }
  return 'adopted';
}

/**
 * Moves a file to a name that was reserved by an empty file. Between the two steps the name is that
 * of the empty file.
 */
async function renameReserved(from: string, to: string): Promise<'renamed' | 'taken'> {
  try {
    await (await open(to, 'wx', 0o600)).close();
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return 'taken';
    throw error;
  }
  try {
    await rename(from, to);
    return 'renamed';
  } catch (error) {
    await rm(to, { force: true });
    throw error;
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}
