import { randomUUID } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { GrowingFile, SpooledFile, StartUpload } from '../../protocol/job-api.ts';
import type { Objects, PartsUpload, UploadedPart } from './objects.ts';

/**
 * Uploads files while they arrive. Their hash, and with it their key, is known only at the end: the
 * parts go to a temporary key, from which the bucket copies the whole.
 */
export type StagedUploads = {
  readonly start: StartUpload;
  /**
   * Puts a file under its key if its upload was started. Resolves with false when the file must be sent from its
   * beginning.
   */
  finish(file: SpooledFile, key: string): Promise<boolean>;
  /** Cancels the upload of a file whose bytes are not needed. */
  cancel(file: Pick<SpooledFile, 'path'>): void;
};

/** The maximum number of parts of one file at a time. */
const PARTS_AT_A_TIME = 3;

/** Creates the staged uploads of a bucket. */
export function createStagedUploads(
  objects: Objects,
  { stagingFolder, partBytes }: { readonly stagingFolder: string; readonly partBytes: number },
): StagedUploads {
  const started = new Map<string, StagedUpload>();
  function cancel({ path }: Pick<SpooledFile, 'path'>): void {
    void started.get(path)?.cancel();
    started.delete(path);
  }
  return {
    start(_caller, { file, atMostBytes }) {
      // A smaller file is sent with one request, directly under its own key.
      if (atMostBytes <= partBytes * 2) return undefined;
      const key = `${stagingFolder}${randomUUID()}`;
      started.set(file.path, new StagedUpload(objects, { file, key, partBytes }));
      return { finish: async () => undefined, cancel: () => cancel(file) };
    },
    async finish(file, key) {
      const upload = started.get(file.path);
      started.delete(file.path);
      return (await upload?.finish(file.sizeBytes, key)) ?? false;
    },
    cancel,
  };
}

type StagedOptions = {
  readonly file: GrowingFile;
  readonly key: string;
  readonly partBytes: number;
};

class StagedUpload {
  readonly #objects: Objects;
  readonly #options: StagedOptions;
  readonly #sent: Promise<UploadedPart>[] = [];
  /** Resolves when all whole parts are being sent, or with the error. */
  readonly #arrival: Promise<Error | undefined>;
  #handle: FileHandle | undefined;
  #upload: PartsUpload | undefined;
  #isCancelled = false;

  constructor(objects: Objects, options: StagedOptions) {
    this.#objects = objects;
    this.#options = options;
    this.#arrival = this.#follow().then(
      () => undefined,
      (error: Error) => error,
    );
  }

  /**
   * Completes the upload. Any failure means that the file must be sent from its beginning; it is in
   * the spool folder.
   */
  async finish(sizeBytes: number, key: string): Promise<boolean> {
    const failure = await this.#arrival;
    const upload = this.#upload;
    if (failure || upload === undefined) {
      await this.cancel();
      return false;
    }
    try {
      const start = this.#sent.length * this.#options.partBytes;
      if (start < sizeBytes) this.#send(upload, { start, end: sizeBytes - 1 });
      await this.#objects.completeParts({ ...upload, sizeBytes }, await Promise.all(this.#sent));
      await this.#handle?.close();
      return await this.#moveTo(key);
    } catch {
      await this.cancel();
      return false;
    }
  }

  async cancel(): Promise<void> {
    this.#isCancelled = true;
    await this.#arrival;
    await Promise.allSettled(this.#sent);
    await this.#handle?.close().catch(() => {});
    // Parts that cannot be removed now are removed with abandoned uploads.
    if (this.#upload) await this.#objects.abortParts(this.#upload).catch(() => {});
  }

  async #moveTo(key: string): Promise<boolean> {
    const isThere = await this.#objects.copy(this.#options.key, key);
    await this.#objects.remove(this.#options.key).catch(() => {});
    return isThere;
  }

  async #follow(): Promise<void> {
    const { file, key, partBytes } = this.#options;
    for (let start = 0; !this.#isCancelled; start += partBytes) {
      const size = await file.sizeBeyond(start + partBytes - 1);
      if (size < start + partBytes || this.#isCancelled) return;
      this.#handle ??= await open(file.path, 'r');
      this.#upload ??= { key, uploadId: await this.#objects.startParts(key) };
      this.#send(this.#upload, { start, end: start + partBytes - 1 });
      // The sender may be faster than the bucket. The spool folder holds the bytes that wait.
      await this.#sent.at(-PARTS_AT_A_TIME);
    }
  }

  #send(upload: PartsUpload, range: { readonly start: number; readonly end: number }): void {
    const handle = this.#handle;
    if (!handle) throw new Error('the file is not open');
    const number = this.#sent.length + 1;
    const sent = this.#objects.putFilePart(upload, handle, { number, ...range });
    // The error is reported where all parts are awaited.
    sent.catch(() => {});
    this.#sent.push(sent);
  }
}
