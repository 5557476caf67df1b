import { posix } from 'node:path';
import { type Readable, Transform, pipeline } from 'node:stream';
import type { Ledger } from '../ledger/ledger.ts';
import {
  type SubmittedName,
  namesUploads,
  withSubmittedNames,
} from '../translate/embedded-file-names.ts';
import { parseFileName } from '../translate/file-mentions.ts';
import { uploadPathOf } from '../files/safe-name.ts';
import { type EngineFile, engineFileOf } from '../protocol/engine-file.ts';
import {
  type ByteRange,
  type Caller,
  type Content,
  type JobApi,
  type Result,
  ok,
  refuse,
} from '../protocol/job-api.ts';
import { type Json, isJsonObject, parseJson } from '../protocol/json.ts';
import { crc32 } from 'node:zlib';

type RestoreServices = {
  readonly jobs: JobApi;
  readonly prompts: Pick<Ledger['prompts'], 'findByJob'>;
};

/** The number of first bytes that are searched. A prompt that ends after them is not changed. */
const HEAD_BYTES = 1024 * 1024;

/**
 * Returns the same service, which restores names in PNG files that an engine behind comfy-api-proxy
 * has made: the embedded prompt then names uploads as its client did. No byte changes its position.
 */
export function restoreEmbeddedNames({ jobs, prompts }: RestoreServices): JobApi {
  return {
    ...jobs,
    async content(caller, assetId, range) {
      const file = engineFileOf(assetId);
      if (!file || !isPngName(file) || !touchesTexts(range)) {
        return jobs.content(caller, assetId, range);
      }
      const answer = await jobs.content(caller, assetId, range && fromStart(range));
      return restoreAnswer(answer, range, async (promptJson) => {
        const name = await submittedNames(prompts, caller, file);
        return withSubmittedNames(promptJson, name);
      });
    },
  };
}

function isPngName({ name }: EngineFile): boolean {
  return posix.extname(name).toLowerCase() === '.png';
}

function touchesTexts(range: ByteRange | undefined): boolean {
  return range === undefined || (range.start < HEAD_BYTES && range.end >= FIRST_TEXT_BYTE);
}

/** Extends a range to the start: a part of the text can be restored only from all of it. */
function fromStart({ end }: ByteRange): ByteRange {
  return { start: 0, end: Math.max(end, HEAD_BYTES - 1) };
}

type Restore = (promptJson: string) => Promise<string>;

function restoreAnswer(
  answer: Result<Content>,
  range: ByteRange | undefined,
  restore: Restore,
): Result<Content> {
  // comfy-api-proxy never redirects its callers.
  if (!answer.ok || answer.value.kind !== 'bytes') return answer;
  const { stream: source, range: servedPart, ...contentFields } = answer.value;
  // The service sent the whole file, whatever range was requested.
  if (!range || !servedPart)
    return ok({ ...contentFields, stream: piped(source, namesRestored(restore)) });
  if (range.start > servedPart.end) {
    source.destroy();
    return refuse(416, 'range_not_satisfiable', 'The file has no such part.');
  }
  const given = { start: range.start, end: Math.min(range.end, servedPart.end) };
  const stream = piped(piped(source, namesRestored(restore)), onlyPart(given));
  return ok({ ...contentFields, stream, range: given });
}

/** Pipes a stream. The end or an error of one stream ends the other. */
function piped(source: Readable, transform: Transform): Readable {
  // The reader of `transform` gets the error.
  pipeline(source, transform, () => {});
  return transform;
}

/** Delays only the first bytes of a file, until the prompt is found or known to be absent. */
function namesRestored(restore: Restore): Transform {
  let heldChunks: Buffer[] | undefined = [];
  let heldBytes = 0;
  let neededBytes = FIRST_TEXT_BYTE;

  async function findPrompt(): Promise<Buffer | undefined> {
    const head = Buffer.concat(heldChunks ?? []);
    const textAt = findPngText(head, 'prompt');
    if (typeof textAt === 'number' && textAt <= HEAD_BYTES) {
      heldChunks = [head];
      neededBytes = textAt;
      return undefined;
    }
    heldChunks = undefined;
    if (typeof textAt !== 'object') return head;
    const text = pngTextAt(head, textAt);
    return namesUploads(text) ? withPngText(head, textAt, await restore(text)) : head;
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (heldChunks === undefined) return done(null, chunk);
      heldChunks.push(chunk);
      heldBytes += chunk.length;
      if (heldBytes < neededBytes) return done();
      findPrompt().then((bytes) => done(null, bytes), done);
    },
    flush: (done) => done(null, heldChunks && Buffer.concat(heldChunks)),
  });
}

/** Passes on one range of a file that is read from its first byte. */
function onlyPart({ start, end }: ByteRange): Transform {
  let at = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const from = Math.max(start - at, 0);
      const to = Math.max(end + 1 - at, 0);
      at += chunk.length;
      done(null, chunk.subarray(from, to));
    },
  });
}

/** Returns the names by the prompt of the job. A prompt that history has dropped gives no names. */
async function submittedNames(
  prompts: RestoreServices['prompts'],
  { user }: Caller,
  { jobId }: EngineFile,
): Promise<SubmittedName> {
  const row = jobId === undefined ? undefined : await prompts.findByJob(user, jobId);
  const names = new Map<string, string>();
  for (const value of row ? inputTexts(parseJson(row.graphJson)) : []) {
    const path = uploadPathOf(parseFileName(value));
    if (!names.has(path)) names.set(path, value);
  }
  return (path) => names.get(posix.join('input', path));
}

function inputTexts(graph: Json): readonly string[] {
  if (!isJsonObject(graph)) return [];
  return Object.values(graph).flatMap((node) => {
    const inputs = isJsonObject(node) ? node['inputs'] : undefined;
    const values = isJsonObject(inputs) ? Object.values(inputs) : [];
    return values.filter((value) => typeof value === 'string');
  });
}

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
/** The length and type before the data of a chunk. The checksum is behind the data. */
const CHUNK_HEAD_BYTES = 8;
const CRC_BYTES = 4;
/** The specification of PNG allows no longer chunk. */
const MAX_LENGTH = 2 ** 31 - 1;

/** The first offset at which a text chunk can begin: behind the signature and `IHDR`. */
const FIRST_TEXT_BYTE = SIGNATURE.length + CHUNK_HEAD_BYTES + 13 + CRC_BYTES;

/** The place of the text of a `tEXt` chunk in its file: `start` inclusive, `end` exclusive. */
type TextRange = {
  readonly chunkStart: number;
  readonly start: number;
  readonly end: number;
};

/**
 * Finds a `tEXt` chunk by its keyword in the first bytes of a PNG file. Returns a number when it needs that many
 * first bytes to continue. Returns `undefined` when the file is not a PNG file, has no such chunk before the pixels,
 * or is damaged.
 * @internal
 */
export function findPngText(head: Buffer, keyword: string): TextRange | number | undefined {
  const seen = Math.min(head.length, SIGNATURE.length);
  if (!SIGNATURE.subarray(0, seen).equals(head.subarray(0, seen))) return undefined;
  const key = `${keyword}\0`;
  for (let at = SIGNATURE.length; ;) {
    const dataStart = at + CHUNK_HEAD_BYTES;
    if (head.length < dataStart) return dataStart;
    const length = head.readUInt32BE(at);
    const type = head.toString('latin1', at + 4, dataStart);
    const isFirst = at === SIGNATURE.length;
    if (isFirst !== (type === 'IHDR') || LAST_CHUNKS.has(type) || length > MAX_LENGTH)
      return undefined;
    const dataEnd = dataStart + length;
    const next = dataEnd + CRC_BYTES;
    if (type === 'tEXt' && length >= key.length) {
      const keyEnd = dataStart + key.length;
      if (head.length < keyEnd) return keyEnd;
      if (head.toString('latin1', dataStart, keyEnd) === key) {
        if (head.length < next) return next;
        const isWhole = head.readUInt32BE(dataEnd) === checksum(head, at, dataEnd);
        return isWhole ? { chunkStart: at, start: keyEnd, end: dataEnd } : undefined;
      }
    }
    at = next;
  }
}

const LAST_CHUNKS: ReadonlySet<string> = new Set(['IDAT', 'IEND']);

/**
 * Returns the text of a chunk.
 * @internal
 */
export function pngTextAt(head: Buffer, { start, end }: TextRange): string {
  return head.toString('latin1', start, end);
}

/**
 * Returns the bytes with another Latin-1 text of the same length, and with the matching checksum.
 * @internal
 */
export function withPngText(head: Buffer, range: TextRange, text: string): Buffer {
  const { chunkStart, start, end } = range;
  if (text.length !== end - start) throw new RangeError('a text in a PNG must keep its length');
  const changed = Buffer.from(head);
  changed.write(text, start, 'latin1');
  changed.writeUInt32BE(checksum(changed, chunkStart, end), end);
  return changed;
}

/** The checksum covers type and data, but not the length. */
function checksum(bytes: Buffer, chunkStart: number, dataEnd: number): number {
  return crc32(bytes.subarray(chunkStart + 4, dataEnd));
}
