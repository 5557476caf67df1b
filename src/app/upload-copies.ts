import { randomUUID } from 'node:crypto';
import { copyFile, link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createMutex } from '../lib/concurrency.ts';
import type { Blobs } from '../blobs/blobs.ts';
import type { AssetRow, FileRow, Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import { contentTypeFor } from '../files/store-file.ts';
import type { ResolvedFile } from '../files/resolve-files.ts';
import { uploadPathOf } from '../files/safe-name.ts';
import {
  type AssetUpload,
  type ByteRange,
  type Caller,
  type Content,
  type JobApi,
  type Result,
  type SpooledFile,
  isGone,
  ok,
} from '../protocol/job-api.ts';
import type { Asset } from '../protocol/v2.ts';

type UploadCopiesOptions = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly blobs: Blobs;
  readonly spoolDir: string;
  /** The maximum size of all copies. Above it the oldest are removed. */
  readonly budgetBytes: number;
  readonly log: Logger;
  readonly now: () => number;
};

/** The prefix of the ids of copies. An embedded engine that used the data directory before has assets without it. */
const COPY_ID_PREFIX = 'kept-';
const BATCH = 100;
/** The codes with which the service, or the engine behind it, cannot deliver the file now. */
const UNAVAILABLE_CODES = new Set(['upstream_unreachable', 'upstream_error']);

/**
 * Copies each upload to a service into the data directory. Services may lose uploads, or be unavailable: files that
 * they lack or cannot deliver are read from the copies.
 */
export class UploadCopies {
  /** The same service, with copies. */
  readonly jobs: JobApi;
  readonly #options: UploadCopiesOptions;
  /** Changes are made one after the other, so that a copy that is being written is not removed. */
  readonly #inOrder = createMutex();

  constructor(options: UploadCopiesOptions) {
    this.#options = options;
    this.jobs = {
      ...options.jobs,
      content: (...args) => this.#content(...args),
      createAsset: (...args) => this.#createAsset(...args),
    };
  }

  /** Resolves when the copies of all earlier uploads are stored. */
  copiesStored(): Promise<void> {
    return this.#inOrder(async () => {});
  }

  /**
   * Uploads a file again. Returns the id of the new asset; `undefined` when there is no copy of it
   * here.
   */
  async reupload(caller: Caller, resolvedFile: ResolvedFile): Promise<string | undefined> {
    const { jobs, ledger } = this.#options;
    await this.copiesStored();
    const row = await ledger.files.get(caller.user, resolvedFile);
    // The name may stand for other bytes now; the prompt was not sent with those.
    const file = row?.hash === resolvedFile.hash ? await this.#spoolCopy(resolvedFile) : undefined;
    if (!row || !file) return undefined;
    const contentType = contentTypeFor(resolvedFile.filename);
    const filePath = uploadPathOf(resolvedFile);
    const upload = { file, contentType, filePath, expectedHash: file.hash };
    const sent = await jobs.createAsset(caller, upload);
    if (!sent.ok) return undefined;
    await putUnlessChanged(ledger, row, sent.value.id);
    return sent.value.id;
  }

  async #createAsset(caller: Caller, upload: AssetUpload): Promise<Result<Asset>> {
    // Sending removes the file of the upload, so the copy gets a name of its own before.
    const linked = await this.#linkUpload(caller, upload);
    let isSent = false;
    try {
      const sent = await this.#options.jobs.createAsset(caller, upload);
      isSent = sent.ok;
      return sent;
    } finally {
      // The client does not wait until the copy is on the disk.
      if (linked && isSent) void this.#storeLinked(caller, { ...upload, file: linked });
      else if (linked) await rm(linked.path, { force: true });
    }
  }

  async #content(caller: Caller, assetId: string, range?: ByteRange): Promise<Result<Content>> {
    const answer = await this.#options.jobs.content(caller, assetId, range);
    if (answer.ok || !(isGone(answer.error) || UNAVAILABLE_CODES.has(answer.error.code)))
      return answer;
    await this.copiesStored();
    const copy = await this.#openCopy(caller, assetId, range);
    return copy ? ok(copy) : answer;
  }

  async #storeCopy({ user }: Caller, { file, contentType, filePath }: AssetUpload): Promise<void> {
    const { ledger, blobs, now } = this.#options;
    await blobs.moveIntoPlace(file);
    const { hash, sizeBytes } = file;
    const id = `${COPY_ID_PREFIX}${randomUUID()}`;
    const row = { id, user, hash, sizeBytes, contentType, filePath, createdAtMs: now() };
    await ledger.assets.insert({ ...row, tagsJson: null, expiresAtMs: null, jobId: null });
    await blobs.markRecorded(hash);
    await this.#enforceBudget();
  }

  async #enforceBudget(): Promise<void> {
    const { ledger, budgetBytes } = this.#options;
    for (const row of await ledger.assets.oldest(BATCH)) {
      if ((await ledger.assets.totalBytes()) <= budgetBytes) return;
      if (row.id.startsWith(COPY_ID_PREFIX)) await this.#removeCopy(row);
    }
  }

  async #removeCopy({ id, hash }: AssetRow): Promise<void> {
    const { ledger, blobs } = this.#options;
    await blobs.markUnrecorded(hash);
    await ledger.assets.remove(id);
    if ((await ledger.assets.countByHash(hash)) === 0) await blobs.remove(hash);
    else await blobs.markRecorded(hash);
  }

  /** Logs a failed copy. The upload itself succeeded, and a copy is not guaranteed. */
  #logNotCopied(error: unknown): void {
    this.#options.log.warn(
      { event: 'uploads.not_kept', err: error },
      'an upload could not be copied',
    );
  }

  /** Links or copies the bytes of an upload to a new path. Returns `undefined` when a copy exists, or that fails. */
  async #linkUpload({ user }: Caller, { file }: AssetUpload): Promise<SpooledFile | undefined> {
    const { ledger, spoolDir } = this.#options;
    if (await ledger.assets.byHash(user, file.hash)) return undefined;
    const path = join(spoolDir, `${COPY_ID_PREFIX}${randomUUID()}`);
    try {
      await link(file.path, path).catch(() => copyFile(file.path, path));
      return { ...file, path };
    } catch (error) {
      this.#logNotCopied(error);
      return undefined;
    }
  }

  async #storeLinked(caller: Caller, upload: AssetUpload): Promise<void> {
    try {
      await this.#inOrder(async () => {
        const { file } = upload;
        if (!(await this.#options.ledger.assets.byHash(caller.user, file.hash)))
          await this.#storeCopy(caller, upload);
      });
    } catch (error) {
      this.#logNotCopied(error);
    } finally {
      await rm(upload.file.path, { force: true });
    }
  }

  async #openCopy(
    { user }: Caller,
    assetId: string,
    range: ByteRange | undefined,
  ): Promise<Content | undefined> {
    const { ledger, blobs } = this.#options;
    const row = await ledger.files.byAsset(user, assetId);
    if (!row || row.hash === null) return undefined;
    const size = await blobs.sizeOf(row.hash);
    if (size === undefined) return undefined;
    const start = range?.start ?? 0;
    const end = Math.min(range?.end ?? Infinity, size - 1);
    if (range && start > end) return undefined;
    const stream = await blobs.open(row.hash, size > 0 ? { start, end } : undefined);
    if (!stream) return undefined;
    const { contentType } = row;
    return {
      kind: 'bytes',
      stream,
      contentType,
      totalBytes: size,
      ...(range && { range: { start, end } }),
    };
  }

  async #spoolCopy(file: ResolvedFile): Promise<AssetUpload['file'] | undefined> {
    const { blobs, spoolDir } = this.#options;
    const sizeBytes = file.hash === null ? undefined : await blobs.sizeOf(file.hash);
    if (sizeBytes === undefined || file.hash === null) return undefined;
    const path = join(spoolDir, `${COPY_ID_PREFIX}${randomUUID()}`);
    if (!(await blobs.copyTo(file.hash, path))) return undefined;
    return { path, sizeBytes, hash: file.hash };
  }
}

async function putUnlessChanged({ files }: Ledger, row: FileRow, assetId: string): Promise<void> {
  const present = await files.get(row.user, row);
  if (present?.assetId === row.assetId) await files.put({ ...row, assetId });
}
