import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { spoolStream } from '../lib/spool.ts';
import { type FileMention, fileKey } from '../translate/file-mentions.ts';
import type { ResolvedFile } from '../files/resolve-files.ts';
import { withinRoot, uploadPathOf } from '../files/safe-name.ts';
import { contentTypeFor } from '../files/store-file.ts';
import { isWithin } from '../config/shared-folders.ts';
import type { Caller, AssetCalls, SpooledFile } from '../protocol/job-api.ts';

type UploadOptions = {
  readonly jobs: AssetCalls;
  readonly caller: Caller;
  /** The input folder of the v1 server. */
  readonly inputDir: string;
  readonly spoolDir: string;
  readonly onUpload: (path: string, assetId: string) => void;
};

/** A file that a workflow names, and its path on this machine. */
type LocalFile = { readonly mention: FileMention; readonly path: string };

/** Uploads each file that a workflow names once. Throws before the first upload when a file is missing. */
export async function uploadFiles(
  options: UploadOptions,
  mentions: readonly FileMention[],
): Promise<readonly ResolvedFile[]> {
  const found = await Promise.all(
    mentions.map((mention) => findLocalFile(options.inputDir, mention)),
  );
  const missing = found.flatMap((local) => ('why' in local ? [local.why] : []));
  if (missing.length > 0) throw new Error([...new Set(missing)].join('\n  '));
  const uploadedByKey = new Map<string, Pick<ResolvedFile, 'assetId' | 'hash'>>();
  const resolvedFiles: ResolvedFile[] = [];
  for (const local of found) {
    if ('why' in local) continue;
    const key = fileKey(local.mention);
    const asset = uploadedByKey.get(key) ?? (await uploadFile(options, local));
    uploadedByKey.set(key, asset);
    resolvedFiles.push({ ...local.mention, ...asset });
  }
  return resolvedFiles;
}

/**
 * Finds a file inside the input folder only: a workflow of another person must not upload other files of this
 * machine.
 */
async function findLocalFile(
  inputDir: string,
  mention: FileMention,
): Promise<LocalFile | { readonly why: string }> {
  const { nodeId, input, value, type, subfolder, filename } = mention;
  const where = `node ${nodeId}, ${input}: ${JSON.stringify(value)}`;
  if (type !== 'input') return { why: `${where} is not an input: copy it there, and name it so` };
  const path = withinRoot(posix.join(subfolder || '.', filename));
  if (path === undefined || path === '') return { why: `${where} lies outside the input folder` };
  const local = join(inputDir, path);
  const info = await stat(local).catch(() => undefined);
  if (!info?.isFile()) return { why: `${where} is not in ${inputDir}` };
  const [top, real] = await Promise.all([realpath(inputDir), realpath(local)]);
  return isWithin(real, top)
    ? { mention, path: local }
    : { why: `${where} leads out of the input folder` };
}

async function uploadFile(options: UploadOptions, { mention, path }: LocalFile) {
  const file = await spoolFile(path, options.spoolDir);
  const answer = await options.jobs.createAsset(options.caller, {
    file,
    filePath: uploadPathOf(mention),
    contentType: contentTypeFor(mention.filename),
    expectedHash: file.hash,
  });
  if (!answer.ok) {
    const { status, code, message } = answer.error;
    throw new Error(`${path} was not taken: ${message} (${code}, ${status})`);
  }
  options.onUpload(path, answer.value.id);
  return { assetId: answer.value.id, hash: file.hash };
}

/** Copies the file, because the upload removes the spooled file. */
async function spoolFile(path: string, dir: string): Promise<SpooledFile> {
  const spoolResult = await spoolStream(createReadStream(path), { dir, maxBytes: Infinity });
  if (!spoolResult.ok) throw new Error(`${path}: ${spoolResult.message}`);
  return spoolResult.value;
}
