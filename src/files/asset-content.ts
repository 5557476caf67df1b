import { addAbortSignal } from 'node:stream';
import { readAtMost } from '../lib/read-at-most.ts';
import {
  type ByteRange,
  type Caller,
  type Content,
  type ContentBytes,
  type AssetCalls,
  type Result,
  ok,
  refuse,
} from '../protocol/job-api.ts';

/** An asset, and the caller that requests it. */
export type WantedAsset = { readonly caller: Caller; readonly assetId: string };

/** A larger picture is not read into memory to be decoded. */
const MAX_PICTURE_BYTES = 256 * 1024 * 1024;
/** A longer text is not shown beside its file: it would be in every copy of the history. */
const MAX_TEXT_BYTES = 256 * 1024;

/** Opens the bytes of an asset. A link that this process can read is read here. */
export async function openContent(
  jobs: AssetCalls,
  { caller, assetId }: WantedAsset,
  range?: ByteRange,
): Promise<Result<Content>> {
  const content = await jobs.content(caller, assetId, range);
  if (!content.ok || content.value.kind === 'bytes') return content;
  return content.value.open?.(range) ?? content;
}

/** Returns the content of a text file; `undefined` when it is too large or cannot be read. */
export async function readText(jobs: AssetCalls, wanted: WantedAsset): Promise<string | undefined> {
  const content = await openContent(jobs, wanted);
  if (!content.ok || content.value.kind === 'redirect') return undefined;
  const bytes = await readAtMost(MAX_TEXT_BYTES, content.value.stream).catch(() => undefined);
  return bytes?.toString();
}

/** Returns all bytes of a picture that fits into memory. Reading ends with `signal`. */
export async function readImageBytes(
  jobs: AssetCalls,
  { signal, ...wanted }: WantedAsset & { readonly signal?: AbortSignal },
): Promise<Result<Buffer>> {
  if (signal?.aborted === true) return refuse(502, 'bad_upstream_response', BROKEN_OFF);
  const content = await openContent(jobs, wanted);
  if (!content.ok) return content;
  if (content.value.kind === 'redirect') {
    return refuse(502, 'bad_upstream_response', 'The file cannot be read from here.');
  }
  if (signal) addAbortSignal(signal, content.value.stream);
  return collect(content.value);
}

async function collect({ stream, totalBytes }: ContentBytes): Promise<Result<Buffer>> {
  const isTooLarge = Number.isFinite(totalBytes) && totalBytes > MAX_PICTURE_BYTES;
  try {
    const bytes = await readAtMost(isTooLarge ? 0 : MAX_PICTURE_BYTES, stream);
    return bytes ? ok(bytes) : refuse(400, 'file_too_large', TOO_LARGE);
  } catch {
    return refuse(502, 'bad_upstream_response', BROKEN_OFF);
  }
}

const BROKEN_OFF = 'The file broke off while it was read.';
const TOO_LARGE = 'The file is too large to be shown as a picture.';
