import { type FilesSource, bucketUrl } from '../../config/files.ts';
import { giveFolderTo, idsOfFolder } from '../../data-folder/bind-ledger.ts';
import { bucketOf, refuseOtherPlace } from '../../data-folder/data-dir.ts';
import { openBucketOf } from '../../app/stored-files.ts';
import { silentLogger } from '../../observability/log.ts';

/** The ids that are stored with the files of a ledger. A migration of the ledger does not move the files. */
export type FilesIds = {
  /** The place of the files in messages: a flag and its value. */
  readonly place: string;
  readonly folderId: string | undefined;
  readonly ledgerId: string | undefined;
  /** Stores this ledger as the one that recorded the files. */
  giveTo(ledgerId: string): Promise<void>;
  close(): Promise<void>;
};

/** Opens the ids of the files in the data directory or the bucket. Throws when the files are in the other place. */
export async function openFilesIds(files: FilesSource, dataDir: string): Promise<FilesIds> {
  const named = bucketOf(dataDir);
  if (named !== undefined && (files.kind === 'folder' || bucketUrl(files) !== named))
    throw new Error(`the files of --data-dir ${dataDir} are in a bucket: give --files ${named}`);
  const bucket = await openBucketOf(files, silentLogger());
  if (bucket === undefined)
    return {
      place: `--data-dir ${dataDir}`,
      ...idsOfFolder(dataDir),
      giveTo: async (ledgerId) => giveFolderTo(dataDir, ledgerId),
      close: async () => {},
    };
  const { identity } = bucket;
  try {
    await refuseOtherPlace(dataDir, identity);
    return {
      place: `--files ${identity.url}`,
      folderId: await identity.readId('folder.id'),
      ledgerId: await identity.readId('ledger.id'),
      giveTo: (ledgerId) => identity.writeId('ledger.id', ledgerId),
      close: () => bucket.close(),
    };
  } catch (error) {
    await bucket.close();
    throw error;
  }
}
