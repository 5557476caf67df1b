import type { Clock } from '../../lib/clock.ts';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { reached } from '../../lib/crash-point.ts';
import type { AssetRow, ClaimedAsset, Ledger } from '../../ledger/ledger.ts';
import {
  type AssetUpload,
  type ByteRange,
  type Content,
  type JobApi,
  ok,
  refuse,
  type Result,
} from '../../protocol/job-api.ts';
import type { Asset } from '../../protocol/v2.ts';
import { checkPathAndLifetime, checkUpload } from './upload-checks.ts';
import { type KeyedRequest, repeatAnswer, keyedRequest } from './idempotency.ts';
import type { Blobs } from '../blobs.ts';
import { isImported } from '../imported-asset.ts';
import { contentLink, isoTime } from '../job-links.ts';
import type { KeyedMutex } from '../../lib/concurrency.ts';

const READ_CHUNK_BYTES = 2 ** 20;

export type AssetOptions = {
  readonly ledger: Ledger;
  readonly blobs: Blobs;
  readonly withLock: KeyedMutex;
  readonly clock: Clock;
  /** True when an unfinished job reads this asset. */
  readonly isInUse: (assetId: string) => boolean | Promise<boolean>;
};

type FromHash = Parameters<JobApi['assetFromHash']>[1];

/** The asset half of the port, by user. */
export type Assets = {
  create(user: string, upload: AssetUpload): Promise<Result<Asset>>;
  fromHash(user: string, request: FromHash): Promise<Result<Asset>>;
  hasBlob(user: string, hash: string): Promise<Result<boolean>>;
  get(user: string, id: string): Promise<Result<Asset>>;
  remove(user: string, id: string): Promise<Result<null>>;
  content(user: string, id: string, range?: ByteRange): Promise<Result<Content>>;
  /** The row behind an id, if it is this user's and has not expired. */
  find(user: string, id: string): Promise<AssetRow | undefined>;
  findByPath(user: string, filePath: string): Promise<AssetRow | undefined>;
  /** Removes a record, and its bytes when no other record shares them. */
  removeAsset(row: AssetRow): Promise<void>;
};

/** Assets over content-addressed files: every create makes a record of its own, equal bytes are stored once. */
export function createAssets(deps: AssetOptions): Assets {
  const { ledger, blobs, withLock, clock } = deps;
  const isLive = (row: AssetRow): boolean =>
    row.expiresAtMs === null || row.expiresAtMs > clock.now();
  const find = async (user: string, id: string): Promise<AssetRow | undefined> => {
    const row = await ledger.assets.get(id);
    return row && row.user === user && isLive(row) ? row : undefined;
  };
  const findByHash = async (user: string, hash: string): Promise<AssetRow | undefined> => {
    const row = await ledger.assets.byHash(user, hash);
    return row && isLive(row) ? row : undefined;
  };
  const repeatFirstAnswer = async (keyed: KeyedRequest, user: string, first: ClaimedAsset) => {
    const row = await find(user, first.assetId);
    return repeatAnswer(keyed, first, { row, show: showAsset, nowMs: clock.now() });
  };
  const findFirstAnswer = async (user: string, keyed: KeyedRequest | undefined) => {
    const first = keyed && (await ledger.keys.ofAsset(user, keyed.key));
    return keyed && first && (await repeatFirstAnswer(keyed, user, first));
  };
  /** Another process, or a request for other bytes, may have claimed the key by now. */
  const record = async (
    row: AssetRow,
    { keyed, createdNew }: { keyed: KeyedRequest | undefined; createdNew: boolean },
  ): Promise<Result<Asset>> => {
    const first = await ledger.assets.insert(row, keyed && { ...keyed, createdNew });
    if (keyed && first) return await repeatFirstAnswer(keyed, row.user, first);
    return ok({ ...showAsset(row, row.createdAtMs), created_new: createdNew });
  };
  const removeAsset = (row: AssetRow): Promise<void> =>
    withLock(row.hash, async () => {
      await blobs.markUnrecorded(row.hash);
      await ledger.assets.remove(row.id);
      await removeBlobIfUnused(row.hash, deps);
    });
  return {
    find,
    removeAsset,
    async findByPath(user, filePath) {
      const row = await ledger.assets.byFilePath(user, filePath);
      return row && isLive(row) ? row : undefined;
    },
    async create(user, upload) {
      const refusal = checkUpload(upload);
      if (refusal) {
        await rm(upload.file.path, { force: true });
        return refusal;
      }
      const { file } = upload;
      const keyed = keyedRequest('upload', file.hash, upload);
      return await withLock(file.hash, async () => {
        const first = await findFirstAnswer(user, keyed);
        if (first) {
          await rm(file.path, { force: true });
          return first;
        }
        const createdNew = (await findByHash(user, file.hash)) === undefined;
        await blobs.moveIntoPlace(file);
        reached('after-bytes-stored');
        const row = newRow(user, { ...upload, ...file }, clock.now());
        const created = await record(row, { keyed, createdNew });
        reached('after-asset-recorded');
        // Where the key was claimed meanwhile these bytes may have no record.
        await (keyed ? removeBlobIfUnused(row.hash, deps) : blobs.markRecorded(row.hash));
        return created;
      });
    },
    async fromHash(user, request) {
      const refusal = checkPathAndLifetime(request);
      if (refusal) return refusal;
      const keyed = keyedRequest('from-hash', request.hash, request);
      return await withLock(request.hash, async () => {
        const first = await findFirstAnswer(user, keyed);
        if (first) return first;
        const known = await findByHash(user, request.hash);
        if (!known) return refuse(404, 'blob_not_found', 'no bytes with this hash');
        const row = newRow(user, { ...known, ...request }, clock.now());
        // "a dedup hit against bytes the platform already had (false)"
        return await record(row, { keyed, createdNew: false });
      });
    },
    async hasBlob(user, hash) {
      return ok((await findByHash(user, hash)) !== undefined);
    },
    async get(user, id) {
      const row = await find(user, id);
      return row ? ok(showAsset(row, clock.now())) : notFound();
    },
    async remove(user, id) {
      const row = await find(user, id);
      if (!row) return notFound();
      const isInUse = await deps.isInUse(id);
      const held = isInUse || (row.jobId !== null && (await ledger.jobs.get(row.jobId)));
      if (held) return refuse(409, 'asset_in_use', 'this asset is in use and cannot be deleted');
      await removeAsset(row);
      return ok(null);
    },
    async content(user, id, range) {
      const row = await find(user, id);
      return row ? await readContent(row, blobs, range) : notFound();
    },
  };
}

/** Removes bytes without a record; they are among those that this ledger has had a hand in. */
export async function removeBlobIfUnused(
  hash: string,
  { ledger, blobs }: Pick<AssetOptions, 'ledger' | 'blobs'>,
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
  const handle = await blobs.open(row.hash);
  if (!handle) return refuse(404, 'not_found', 'the bytes of this asset are gone');
  const stream = handle.createReadStream({
    highWaterMark: READ_CHUNK_BYTES,
    ...(range && { start: range.start, end }),
  });
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

function newRow(user: string, asset: NewAsset, nowMs: number): AssetRow {
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

function showAsset(row: AssetRow, nowMs: number): Asset {
  return {
    id: row.id,
    hash: row.hash,
    size_bytes: row.sizeBytes,
    content_type: row.contentType,
    created_at: isoTime(row.createdAtMs),
    ...contentLink(row.id, nowMs),
    file_path: row.filePath,
    expires_at: row.expiresAtMs === null ? null : isoTime(row.expiresAtMs),
    job_id: isImported(row) ? null : row.jobId,
    ...(row.tagsJson !== null && { tags: JSON.parse(row.tagsJson) as readonly string[] }),
  };
}

function notFound<T>(): Result<T> {
  return refuse(404, 'not_found', 'no such asset');
}
