import type { FilesSource } from '../../config/files.ts';
import type { LedgerSource } from '../../config/ledger.ts';
import { reached } from '../../lib/crash-point.ts';
import type { StartProgress } from '../progress.ts';
import { type FilesIds, openFilesIds } from './files-ids.ts';
import { copyRecords, countRecords, differences } from './copy-records.ts';
import { type OpenSide, type TargetSide, openSource, openTarget, secretOf } from './open-sides.ts';

export type MigrationOptions = {
  readonly from: LedgerSource;
  readonly to: LedgerSource;
  readonly dataDir: string;
  /** The place of the files of the ledger. They are not moved. */
  readonly files: FilesSource;
  readonly progress: StartProgress;
};

/**
 * Copies all records of a ledger into another one, and binds the files to that one. Returns the number of records.
 * Call it again after an interruption. Throws when the ledgers and files do not belong together.
 */
export async function migrate(options: MigrationOptions): Promise<number> {
  const files = await openFilesIds(options.files, options.dataDir);
  try {
    return await migrateBeside(files, options);
  } finally {
    await files.close();
  }
}

async function migrateBeside(files: FilesIds, options: MigrationOptions): Promise<number> {
  const { dataDir } = options;
  const source = await openSource(options.from, dataDir);
  try {
    await source.refuseUse();
    const target = await openTarget(options.to, dataDir);
    try {
      await refuseMismatch(source, target, files);
      return await copy({ source, target, files }, options);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

type Parties = {
  readonly source: OpenSide;
  readonly target: TargetSide;
  readonly files: FilesIds;
};

async function copy(
  { source, target, files }: Parties,
  { dataDir, progress }: MigrationOptions,
): Promise<number> {
  const secret = await secretOf(source, dataDir);
  await target.records.setSource(source.identity.id);
  const records = await countRecords(source);
  await copyRecords(source, target, progress({ records }));
  const found = await differences(source, target);
  if (found.length > 0) {
    throw new Error(`the copy is not the same as its source: ${found.join('; ')}`);
  }
  await source.refuseUse();
  reached('migrate-verified');
  await target.takeSecret(secret);
  const { folderId } = files;
  if (folderId !== undefined) await target.identity.tie(folderId);
  const { id } = target.identity;
  // Bind the files first: servers can open a ledger in Redis as soon as it is placed.
  await files.giveTo(id);
  reached('migrate-placed');
  await target.place();
  return records;
}

/** Throws when ledgers and files do not belong together, or the target has other records. */
async function refuseMismatch(
  source: OpenSide,
  target: TargetSide,
  { place, folderId, ledgerId }: FilesIds,
): Promise<void> {
  const sourceId = source.identity.id;
  const targetId = target.identity.id;
  if (sourceId === targetId) throw new Error('--from and --to are the same ledger');
  await target.refuseUse();
  const begun = await target.records.source();
  if (begun !== undefined && begun !== sourceId) {
    throw new Error('--to has records of another ledger: give an empty one');
  }
  if (begun === undefined && !target.isUnused) {
    throw new Error('--to is not empty: give an empty ledger, or move the old one away');
  }
  const isTargets = begun === sourceId && ledgerId === targetId;
  if (ledgerId !== undefined && ledgerId !== sourceId && !isTargets) {
    throw new Error(`${place} has files of another ledger than --from`);
  }
  const tied = await source.identity.folder();
  if (tied !== undefined && tied !== folderId) {
    throw new Error(`--from belongs to another folder than ${place}`);
  }
}
