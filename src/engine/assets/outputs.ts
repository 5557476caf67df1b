import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { reached } from '../../lib/crash-point.ts';
import { outputTypeOf } from '../../protocol/v2.ts';
import type { AssetOptions } from './assets.ts';
import type { CounterRequest, StoredOutput, WrittenFile } from '../jobs/worker-protocol.ts';
import { bytesAtMost } from '../../lib/lru-size.ts';
import { counterIn } from '../../translate/free-names.ts';

/** Reserves names for files that are made at the same time. */
export type OutputNames = {
  /** Reserves a counter above `floor` that was never reserved before. */
  reserveCounter(user: string, start: string, floor: number): number | Promise<number>;
  /** Claims a file name. False when another process has claimed it. */
  claimName(user: string, filePath: string): boolean | Promise<boolean>;
};

/** Creates the names for a single process, which makes the files of a user one after the other. */
export function createOutputNames(): OutputNames {
  const reservedCounters = new LRUCache<string, number>(bytesAtMost(MAX_COUNTER_BYTES));
  return {
    reserveCounter(user, start, floor) {
      const key = JSON.stringify([user, start]);
      const next = 1 + Math.max(floor, reservedCounters.get(key) ?? 0);
      reservedCounters.set(key, next);
      return next;
    },
    claimName: () => true,
  };
}

export type OutputOptions = Omit<AssetOptions, 'isInUse'> & {
  readonly names: OutputNames;
  /** Returns the highest counter of files that share the names but are not in the ledger. */
  readonly highestUsedElsewhere?:
    | ((user: string, request: CounterRequest) => Promise<number>)
    | undefined;
};

/** The files that jobs make, named as v1 names them. */
export interface Outputs {
  /**
   * Returns the number after the highest one used or reserved, so that parallel jobs never get
   * the same.
   */
  readonly nextCounter: (
    maker: { readonly user: string; readonly jobId: string },
    request: CounterRequest,
  ) => Promise<number>;
  /** Makes a file an asset of the job. It survives `kill -9` when this resolves. */
  readonly commit: (file: MadeFile, bytes: Uint8Array) => Promise<StoredOutput>;
}

const MAX_COUNTER_BYTES = 4 * 1024 * 1024;
/**
 * How long a listed counter is used: a job that saves thousands of files does not list them for
 * each.
 */
const FLOOR_VALID_MS = 1000;
const COUNTED_NAME = /^(.*)_\d{5,}_(\.[^.]*)?$/s;

/** Creates files with names that are unique for each user. */
export function createOutputs(deps: OutputOptions): Outputs {
  const { ledger, blobs, withLock, names, clock, highestUsedElsewhere } = deps;
  const recentFloors = new LRUCache<string, { readonly floor: number; readonly atMs: number }>(
    bytesAtMost(MAX_COUNTER_BYTES),
  );
  const highestUsed = async (user: string, request: CounterRequest): Promise<number> => {
    const start = counterPrefix(request);
    const paths = await ledger.assets.outputPaths(user, start);
    const used = paths.map((path) => counterIn(path.slice(start.length)));
    const elsewhere = (await highestUsedElsewhere?.(user, request)) ?? 0;
    return used.reduce((most, counter) => Math.max(most, counter), elsewhere);
  };
  /**
   * Returns the next counter of a job. The reserved numbers are above those that the job has used
   * since the listing.
   */
  const nextCounterOfJob = async (
    { user, jobId }: { readonly user: string; readonly jobId: string },
    request: CounterRequest,
  ): Promise<number> => {
    const key = JSON.stringify([jobId, counterPrefix(request)]);
    const known = recentFloors.get(key);
    const isRecent =
      known && clock.now() - known.atMs < FLOOR_VALID_MS && clock.now() >= known.atMs;
    const floor = isRecent ? known.floor : await highestUsed(user, request);
    if (!isRecent) recentFloors.set(key, { floor, atMs: clock.now() });
    return await names.reserveCounter(user, counterPrefix(request), floor);
  };
  const isNameTaken = async (user: string, filePath: string): Promise<boolean> =>
    !(await names.claimName(user, filePath)) ||
    (await ledger.assets.byFilePath(user, filePath)) !== undefined;
  const findFreeName = async (user: string, file: WrittenFile): Promise<string> => {
    const [, prefix, extension = ''] = COUNTED_NAME.exec(file.name) ?? [];
    let name = file.name;
    let floor: number | undefined;
    while (prefix !== undefined && (await isNameTaken(user, `${folderOf(file)}${name}`))) {
      const request = { ...file, prefix };
      floor ??= await highestUsed(user, request);
      const counter = await names.reserveCounter(user, counterPrefix(request), floor);
      name = `${prefix}_${String(counter).padStart(5, '0')}_${extension}`;
    }
    return name;
  };
  /** Records a file under a free name. */
  const record = ({ user, ...made }: MadeFile): Promise<StoredOutput> =>
    withLock(namesLockKey(user), async () => {
      const { jobId, file } = made;
      const name = await findFreeName(user, file);
      const id = randomUUID();
      const row = {
        id,
        user,
        hash: file.hash,
        sizeBytes: file.sizeBytes,
        contentType: file.contentType,
        filePath: `${folderOf(file)}${name}`,
        tagsJson: null,
        createdAtMs: clock.now(),
        expiresAtMs: null,
        jobId,
      };
      // A job whose end is not on disk runs again, and then makes its files again.
      await ledger.assets.insert(row, undefined, 'soon');
      return toOutput({ id, name, ...made });
    });
  return {
    nextCounter: (maker, request) =>
      withLock(namesLockKey(maker.user), () => nextCounterOfJob(maker, request)),
    // Resolves when the record exists; the lock is held until the marker is gone, too.
    commit: (made, bytes) =>
      new Promise((resolve, reject) => {
        const { hash } = made.file;
        const storeAndRecord = async (): Promise<void> => {
          // Another process may have removed the same bytes, together with their last record.
          do await blobs.put(hash, bytes);
          while (!(await blobs.isInPlace(hash)));
          reached('after-bytes-stored');
          const output = await record(made);
          reached('after-asset-recorded');
          resolve(output);
          // A sweep removes a marker that cannot be removed now.
          await blobs.markRecorded(hash);
        };
        withLock(hash, storeAndRecord).catch(reject);
      }),
  };
}

type MadeFile = {
  readonly user: string;
  readonly nodeId: string;
  readonly jobId: string;
  readonly file: WrittenFile;
};

type SavedFile = Omit<MadeFile, 'user'> & { readonly id: string; readonly name: string };

function toOutput({ file, ...saved }: SavedFile): StoredOutput {
  return {
    node_id: saved.nodeId,
    name: saved.name,
    type: saved.name.endsWith('.latent') ? 'latent' : outputTypeOf(file.contentType),
    content_type: file.contentType,
    size_bytes: file.sizeBytes,
    id: saved.id,
    hash: file.hash,
    job_id: saved.jobId,
    x_subfolder: file.subfolder,
    ...(file.temp && { x_temp: true }),
    ...(file.websocket && { x_websocket: true }),
  };
}

function folderOf({ temp, subfolder }: Omit<CounterRequest, 'prefix'>): string {
  return `${temp ? 'temp' : 'output'}/${subfolder === '' ? '' : `${subfolder}/`}`;
}

function counterPrefix(request: CounterRequest): string {
  return `${folderOf(request)}${request.prefix}_`;
}

function namesLockKey(user: string): string {
  return `names of ${user}`;
}
