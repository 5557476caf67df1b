import { rm } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { reached } from '../../lib/crash-point.ts';
import { outputTypeOf } from '../../protocol/v2.ts';
import { type AssetOptions, newRow } from './assets.ts';
import type { StoredOutput, WrittenFile } from '../jobs/worker-protocol.ts';
import { bytesAtMost } from '../../lib/lru-size.ts';
import { type NameSeries, counterIn } from '../../translate/free-names.ts';

/** Reserves names for files that are made at the same time. */
export type OutputNames = {
  /** Reserves a counter above `floor` that this series never got before. */
  reserveCounter(user: string, series: string, floor: number): number | Promise<number>;
  /** Claims a file name. False when another process has claimed it. */
  claimName(user: string, filePath: string): boolean | Promise<boolean>;
};

/** Creates the names for a single process, which makes the files of a user one after the other. */
export function createOutputNames(): OutputNames {
  const reservedCounters = new LRUCache<string, number>(bytesAtMost(MAX_COUNTER_BYTES));
  return {
    reserveCounter(user, series, floor) {
      const key = JSON.stringify([user, series]);
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
    | ((user: string, series: NameSeries) => Promise<number>)
    | undefined;
};

/**
 * Makes a file an asset of its job, under the next free name of v1. It survives `kill -9` when this
 * resolves. The file is moved or removed, even when this rejects.
 */
export type SaveOutput = (file: MadeFile) => Promise<StoredOutput>;

const MAX_COUNTER_BYTES = 4 * 1024 * 1024;
/**
 * How long a listed counter is used: a job that saves thousands of files does not list them for
 * each.
 */
const FLOOR_VALID_MS = 1000;

/** Saves files under names that are unique for each user. */
export function createSaveOutput(options: OutputOptions): SaveOutput {
  const { blobs, withLock } = options;
  const freeNames = new FreeNames(options);
  return async (made) => {
    const { file } = made;
    try {
      return await withLock(file.hash, async () => {
        await blobs.put(file);
        reached('after-bytes-stored');
        const output = await record(made, freeNames, options);
        reached('after-asset-recorded');
        // A sweep removes a marker that cannot be removed now.
        await blobs.markRecorded(file.hash).catch(() => {});
        return output;
      });
    } catch (error) {
      // A file that cannot be removed now is removed at a later start. The first error matters more.
      await rm(file.path, { force: true }).catch(() => {});
      throw error;
    }
  };
}

/** Records a file under a free name. */
function record(
  made: MadeFile,
  freeNames: FreeNames,
  { ledger, withLock, clock }: OutputOptions,
): Promise<StoredOutput> {
  return withLock(`names of ${made.user}`, async () => {
    const { user, jobId, file } = made;
    const name = await freeNames.find(made);
    const filePath = `${folderOf(file)}${name}`;
    const row = newRow(user, { ...file, filePath }, clock.now());
    // A job whose end is not on disk runs again, and then makes its files again.
    await ledger.assets.insert({ ...row, jobId }, undefined, 'soon');
    return toOutput(made, row.id, name);
  });
}

/** The names that v1 would give to new files. */
class FreeNames {
  readonly #options: OutputOptions;
  readonly #recentFloors = new LRUCache<string, number>({
    ...bytesAtMost(MAX_COUNTER_BYTES),
    ttl: FLOOR_VALID_MS,
  });

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  async find(made: MadeFile): Promise<string> {
    const { user, file } = made;
    const floor = await this.#floorOf(made);
    const series = `${folderOf(file)}${file.name.series}`;
    for (;;) {
      const counter = await this.#options.names.reserveCounter(user, series, floor);
      const name = `${file.name.start}${String(counter).padStart(5, '0')}${file.name.end}`;
      if (!(await this.#isNameTaken(user, `${folderOf(file)}${name}`))) return name;
    }
  }

  /** The reserved numbers are above those that the job has used since the listing. */
  async #floorOf({ user, jobId, file }: MadeFile): Promise<number> {
    const key = JSON.stringify([jobId, startOf(file)]);
    const known = this.#recentFloors.get(key);
    if (known !== undefined) return known;
    const floor = await this.#highestUsed(user, file);
    this.#recentFloors.set(key, floor);
    return floor;
  }

  async #highestUsed(user: string, series: NameSeries): Promise<number> {
    const { ledger, highestUsedElsewhere } = this.#options;
    const prefix = startOf(series);
    const paths = await ledger.assets.outputPaths(user, prefix);
    const used = paths.map((path) => counterIn(path.slice(prefix.length)));
    const elsewhere = (await highestUsedElsewhere?.(user, series)) ?? 0;
    return used.reduce((most, counter) => Math.max(most, counter), elsewhere);
  }

  async #isNameTaken(user: string, filePath: string): Promise<boolean> {
    const { ledger, names } = this.#options;
    if (!(await names.claimName(user, filePath))) return true;
    return (await ledger.assets.byFilePath(user, filePath)) !== undefined;
  }
}

type MadeFile = {
  readonly user: string;
  readonly nodeId: string;
  readonly jobId: string;
  readonly file: WrittenFile;
};

function toOutput({ nodeId, jobId, file }: MadeFile, id: string, name: string): StoredOutput {
  return {
    node_id: nodeId,
    name,
    type: name.endsWith('.latent') ? 'latent' : outputTypeOf(file.contentType),
    content_type: file.contentType,
    size_bytes: file.sizeBytes,
    id,
    hash: file.hash,
    job_id: jobId,
    x_subfolder: file.subfolder,
    ...(file.temp && { x_temp: true }),
    ...(file.websocket && { x_websocket: true }),
  };
}

function folderOf({ temp, subfolder }: Pick<WrittenFile, 'temp' | 'subfolder'>): string {
  return `${temp ? 'temp' : 'output'}/${subfolder === '' ? '' : `${subfolder}/`}`;
}

function startOf(series: NameSeries): string {
  return `${folderOf(series)}${series.name.start}`;
}
