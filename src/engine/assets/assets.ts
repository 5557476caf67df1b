import type { TimeSource } from '../../lib/clock.ts';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { reached } from '../../lib/crash-point.ts';
import type { AssetRow, Ledger } from '../../ledger/ledger.ts';
import {
  type AssetCalls,
  type AssetUpload,
  type ByteRange,
  type Content,
  ok,
  refuse,
  type Result,
} from '../../protocol/job-api.ts';
import type { Asset } from '../../protocol/v2.ts';
import { checkPathAndLifetime, checkUpload } from './upload-checks.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { showAsset } from '../job-links.ts';
import type { KeyedMutex } from '../../lib/concurrency.ts';

export type AssetOptions = {
  readonly ledger: Ledger;
  readonly blobs: Blobs;
  readonly withLock: KeyedMutex;
  readonly clock: TimeSource;
  /** True when an unfinished job reads or lists this asset. */
  readonly isInUse: IsInUse;
};

type IsInUse = (assetId: string) => boolean | Promise<boolean>;

const NO_IDS: ReadonlySet<string> = new Set();

type FromHash = Parameters<AssetCalls['assetFromHash']>[1];

/** Removes a record, and its bytes when no other record shares them. */
export type AssetRemoval = { removeAsset(row: AssetRow): Promise<void> };

/**
 * The asset calls of the port, by user, over content-addressed files: every create makes a record
 * of its own, and equal bytes are stored once.
 */
export class Assets {
  readonly #options: AssetOptions;
  /** The ids that jobs need which are being accepted. */
  readonly #held = new Set<ReadonlySet<string>>();

  constructor(options: AssetOptions) {
    this.#options = options;
  }

  readonly calls: AssetCalls = {
    /** The file of the upload is moved or removed, even when this throws. */
    createAsset: async ({ user }, upload) => {
      try {
        const store = () => this.#store(user, upload);
        return checkUpload(upload) ?? (await this.#options.withLock(upload.file.hash, store));
      } finally {
        await rm(upload.file.path, { force: true });
      }
    },
    assetFromHash: async ({ user }, request) => {
      const refusal = checkPathAndLifetime(request);
      if (refusal) return refusal;
      const { ledger, blobs, withLock } = this.#options;
      return await withLock(request.hash, async () => {
        const created = await this.#recordKnownBytes(user, request);
        if (!created.ok || (await blobs.sizeOf(request.hash)) !== undefined) return created;
        // Another process may have removed the bytes before it could see the record.
        await ledger.assets.remove(created.value.id);
        return noSuchBytes();
      });
    },
    hasBlob: async ({ user }, hash) => ok((await this.#findByHash(user, hash)) !== undefined),
    asset: async ({ user }, id) => {
      const row = await this.find(user, id);
      return row ? ok(showAsset(row, this.#nowMs())) : notFound();
    },
    deleteAsset: async ({ user }, id) => {
      const { ledger } = this.#options;
      const row = await this.find(user, id);
      if (!row) return notFound();
      const isOfJob = row.jobId !== null && (await ledger.jobs.get(row.jobId)) !== undefined;
      if (!isOfJob && (await this.removeUnused(row, this.#options.isInUse))) return ok(null);
      return refuse(409, 'asset_in_use', 'this asset is in use and cannot be deleted');
    },
    content: async ({ user }, id, range) => {
      const row = await this.find(user, id);
      return row ? await readContent(row, this.#options.blobs, range) : notFound();
    },
  };

  /** Returns the row of an id of this user that has not expired; ids in `kept` may have expired. */
  async find(user: string, id: string, kept = NO_IDS): Promise<AssetRow | undefined> {
    const row = await this.#options.ledger.assets.get(id);
    return row?.user === user ? this.#unexpired(row, kept) : undefined;
  }

  async findByPath(user: string, filePath: string, kept = NO_IDS): Promise<AssetRow | undefined> {
    return this.#unexpired(await this.#options.ledger.assets.byFilePath(user, filePath), kept);
  }

  async removeAsset(row: AssetRow): Promise<void> {
    await this.removeUnused(row, async () => false);
  }

  /** Removes the asset. `false`: an unfinished job reads it, so it stays. */
  removeUnused({ id, hash }: AssetRow, isInUse: IsInUse): Promise<boolean> {
    const { ledger, blobs, withLock } = this.#options;
    return withLock(hash, async () => {
      const isHeld = [...this.#held].some((ids) => ids.has(id));
      if (isHeld || (await isInUse(id))) return false;
      await blobs.markUnrecorded(hash);
      await ledger.assets.remove(id);
      await removeBlobIfUnused(hash, this.#options);
      return true;
    });
  }

  /** Keeps assets until the result is called: the job that reads them is recorded, or refused. */
  hold(ids: ReadonlySet<string>): () => void {
    this.#held.add(ids);
    return () => void this.#held.delete(ids);
  }

  /** Returns those of the held assets that are gone. */
  async missing(ids: ReadonlySet<string>): Promise<readonly string[]> {
    const { ledger, withLock } = this.#options;
    const missing: string[] = [];
    for (const id of ids) {
      const row = await ledger.assets.get(id);
      // A removal in progress ends first.
      const isThere = row && (await withLock(row.hash, () => ledger.assets.get(id)));
      if (!isThere) missing.push(id);
    }
    return missing;
  }

  async #store(user: string, upload: AssetUpload): Promise<Result<Asset>> {
    const { blobs } = this.#options;
    const { file, idempotencyKey: key } = upload;
    const createdNew = (await this.#findByHash(user, file.hash)) === undefined;
    await blobs.moveIntoPlace(file);
    reached('after-bytes-stored');
    const row = newRow(user, { ...upload, ...file }, this.#nowMs());
    const created = await this.#record(row, { key, createdNew });
    reached('after-asset-recorded');
    // If the key was used before, these bytes may have no record.
    await (key !== undefined
      ? removeBlobIfUnused(row.hash, this.#options)
      : blobs.markRecorded(row.hash));
    return created;
  }

  async #recordKnownBytes(user: string, request: FromHash): Promise<Result<Asset>> {
    const existing = await this.#findByHash(user, request.hash);
    if (!existing) return noSuchBytes();
    const row = newRow(user, { ...existing, ...request }, this.#nowMs());
    // The contract says: "a dedup hit against bytes the platform already had (false)".
    return await this.#record(row, { key: request.idempotencyKey, createdNew: false });
  }

  /** Records the asset. The contract says: "any later request with the same key is rejected". */
  async #record(
    row: AssetRow,
    { key, createdNew }: { key: string | undefined; createdNew: boolean },
  ): Promise<Result<Asset>> {
    if (!(await this.#options.ledger.assets.insert(row, key)))
      return refuse(422, 'idempotency_key_reuse', 'this idempotency key has been used before');
    return ok({ ...showAsset(row, row.createdAtMs), created_new: createdNew });
  }

  async #findByHash(user: string, hash: string): Promise<AssetRow | undefined> {
    return this.#unexpired(await this.#options.ledger.assets.byHash(user, hash));
  }

  #unexpired(row: AssetRow | undefined, kept = NO_IDS): AssetRow | undefined {
    const expiresAtMs = row?.expiresAtMs ?? Infinity;
    return row && (kept.has(row.id) || expiresAtMs > this.#nowMs()) ? row : undefined;
  }

  #nowMs(): number {
    return this.#options.clock.now();
  }
}

/** Removes bytes without a record, if this ledger has recorded or marked them before. */
export async function removeBlobIfUnused(
  hash: string,
  { ledger, blobs }: { readonly ledger: Ledger; readonly blobs: Blobs },
): Promise<void> {
  const isFree = (await ledger.assets.countByHash(hash)) === 0;
  await (isFree ? blobs.remove(hash) : blobs.markRecorded(hash));
}

async function readContent(
  row: AssetRow,
  blobs: Blobs,
  range?: ByteRange,
): Promise<Result<Content>> {
  const end = Math.min(range?.end ?? Infinity, row.sizeBytes - 1);
  if (range && (range.start > end || range.start < 0)) {
    const details = { size_bytes: row.sizeBytes };
    return refuse(416, 'range_not_satisfiable', 'the range lies outside of the content', {
      details,
    });
  }
  const stream = await blobs.open(row.hash, range && { start: range.start, end });
  if (!stream) return refuse(404, 'not_found', 'the bytes of this asset are gone');
  return ok({
    kind: 'bytes',
    stream,
    contentType: row.contentType,
    totalBytes: row.sizeBytes,
    etag: `"${row.hash}"`,
    ...(range && { range: { start: range.start, end } }),
  });
}

type NewAsset = Pick<AssetUpload, 'tags' | 'expiresInSeconds' | 'contentType' | 'filePath'> &
  Pick<AssetRow, 'hash' | 'sizeBytes'>;

/** Returns the record of a new asset, which no job has made. */
export function newRow(user: string, asset: NewAsset, nowMs: number): AssetRow {
  return {
    id: randomUUID(),
    user,
    hash: asset.hash,
    sizeBytes: asset.sizeBytes,
    contentType: asset.contentType,
    filePath: asset.filePath,
    tagsJson: asset.tags ? JSON.stringify(asset.tags) : null,
    createdAtMs: nowMs,
    expiresAtMs:
      asset.expiresInSeconds === undefined ? null : nowMs + asset.expiresInSeconds * 1000,
    jobId: null,
  };
}

function noSuchBytes<T>(): Result<T> {
  return refuse(404, 'blob_not_found', 'no bytes with this hash');
}

function notFound<T>(): Result<T> {
  return refuse(404, 'not_found', 'no such asset');
}
