import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { LRUCache } from 'lru-cache';
import { hashOf } from '../../lib/hash.ts';
import { type OutputPlacer, createOutputPlacer } from './place-output.ts';
import type { AskMainThread, ReadableFile, WorkerSetup } from '../jobs/worker-protocol.ts';
import { atMost } from '../../lib/lru-size.ts';

/** The files that a job reads. Errors have the `code` `ENOENT` when the bytes are gone. */
export type InputReader = {
  read(this: void, file: ReadableFile): Promise<Uint8Array>;
  /** Returns the digest in hex digits. */
  sha256(this: void, file: ReadableFile): Promise<string>;
};

/** Reads and writes of files by a worker thread. */
export type WorkerFiles = { readonly inputs: InputReader; readonly outputs: OutputPlacer };

const MAX_DIGESTS = 10_000;

/** Opens files below a folder or, without a folder, through the main thread. */
export function openWorkerFiles(
  { blobsDir, spoolDir }: Pick<WorkerSetup, 'blobsDir' | 'spoolDir'>,
  ask: AskMainThread,
): WorkerFiles {
  if (blobsDir !== undefined)
    return { inputs: localFiles, outputs: createOutputPlacer({ blobsDir, spoolDir }) };
  return { inputs: createAskingReader(ask), outputs: createAskingPlacer(ask) };
}

const localFiles: InputReader = {
  read: ({ path }) => readFile(path ?? ''),
  async sha256({ path }) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(path ?? '', { highWaterMark: 2 ** 20 }), hash);
    return hash.digest('hex');
  },
};

/**
 * Reads through the main thread. Bytes of one hash always have the same digest, so it is cached.
 */
function createAskingReader(ask: AskMainThread): InputReader {
  const digests = new LRUCache<string, string>(atMost(MAX_DIGESTS));
  const read = async ({ hash }: ReadableFile): Promise<Uint8Array> => {
    const bytes = await ask({ kind: 'read', ask: hash });
    if (bytes !== null) return bytes;
    throw Object.assign(new Error('the bytes are gone'), { code: 'ENOENT' });
  };
  return {
    read,
    async sha256(file) {
      const known = digests.get(file.hash);
      if (known !== undefined) return known;
      const digest = createHash('sha256')
        .update(await read(file))
        .digest('hex');
      digests.set(file.hash, digest);
      return digest;
    },
  };
}

function createAskingPlacer(ask: AskMainThread): OutputPlacer {
  return {
    async place(bytes) {
      const hash = hashOf(bytes);
      // Copied, since the memory of the message goes to the main thread.
      await ask({ kind: 'store', ask: { hash, bytes: Uint8Array.from(bytes) } });
      return hash;
    },
    // The bucket has the bytes on its disks already.
    sync: async () => {},
  };
}
