import { bucketUrl } from '../../config/files.ts';
import type { LedgerSource } from '../../config/ledger.ts';
import { bucketOf } from '../../data-folder/data-dir.ts';
import { reached } from '../../lib/crash-point.ts';
import { withOpen } from '../with-open.ts';
import type { FilesPlace } from '../files/places.ts';
import { type FilesLocation, withFiles } from '../files/with-files.ts';
import type { StartProgress } from '../progress.ts';
import { copyRecords, countRecords, differences } from './copy-records.ts';
import { type OpenSide, type TargetSide, openSource, openTarget, secretOf } from './open-sides.ts';

export type MigrationOptions = FilesLocation & {
  readonly from: LedgerSource;
  readonly to: LedgerSource;
  readonly progress: StartProgress;
};

/**
 * Copies all records of a ledger into another one, and binds the files to that one. Returns the number of records.
 * Call it again after an interruption. Throws when the ledgers and files do not belong together.
 */
export async function migrate(options: MigrationOptions): Promise<number> {
  const { dataDir, from, to } = options;
  refuseOtherBucket(options);
  return withFiles(options, async ({ place, recordedBy }) => {
    const files = { place, recordedBy, folderId: await place.readSmall('folder.id') };
    return withOpen(await openSource(from, dataDir), async (source) => {
      await source.refuseUse();
      return withOpen(await openTarget(to, dataDir), async (target) => {
        await refuseMismatch({ source, target, files });
        return await copy({ source, target, files }, options);
      });
    });
  });
}

/** The files of the ledger stay where they are. */
function refuseOtherBucket({ files, dataDir }: FilesLocation): void {
  const named = bucketOf(dataDir);
  if (named !== undefined && (files.kind === 'folder' || bucketUrl(files) !== named))
    throw new Error(`the files of --data-dir ${dataDir} are in a bucket: give --files ${named}`);
}

type Parties = {
  readonly source: OpenSide;
  readonly target: TargetSide;
  readonly files: FilesOfLedger;
};

/** The files of the ledger. Only the id of their ledger is changed. */
type FilesOfLedger = {
  readonly place: FilesPlace;
  readonly folderId: string | undefined;
  /** The id of the ledger that recorded the files, if it is known. */
  readonly recordedBy: string | undefined;
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
  const { place, folderId } = files;
  if (folderId !== undefined) await target.identity.tie(folderId);
  const { id } = target.identity;
  // Bind the files first: servers can open a ledger in Redis as soon as it is placed.
  await place.writeSmall('ledger.id', id);
  reached('migrate-placed');
  await target.place();
  return records;
}

/** Throws when ledgers and files do not belong together, or the target has other records. */
async function refuseMismatch({ source, target, files }: Parties): Promise<void> {
  const { place, folderId, recordedBy } = files;
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
  const isTargets = begun === sourceId && recordedBy === targetId;
  if (recordedBy !== undefined && recordedBy !== sourceId && !isTargets) {
    throw new Error(`${place.name} has files of another ledger than --from`);
  }
  const tied = await source.identity.folder();
  if (tied !== undefined && tied !== folderId) {
    throw new Error(`--from belongs to another folder than ${place.name}`);
  }
}
