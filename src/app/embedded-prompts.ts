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
import { FIRST_TEXT_BYTE, findPngText, pngTextAt, withPngText } from './png-text.ts';

type RestoreServices = {
  readonly jobs: JobApi;
  readonly prompts: Pick<Ledger['prompts'], 'findByJob'>;
};

/** A prompt that ends further behind in its file stays as it is. */
const HEAD_BYTES = 1024 * 1024;

/**
 * The same service; in the PNG files an engine behind comfy-api-proxy has made, the embedded prompt
 * names uploads as its client did. All bytes stay where they are.
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

/** A part of the text can be restored only from all of it. */
function fromStart({ end }: ByteRange): ByteRange {
  return { start: 0, end: Math.max(end, HEAD_BYTES - 1) };
}

type Restore = (promptJson: string) => Promise<string>;

function restoreAnswer(
  answer: Result<Content>,
  range: ByteRange | undefined,
  restore: Restore,
): Result<Content> {
  // comfy-api-proxy never sends its callers elsewhere.
  if (!answer.ok || answer.value.kind !== 'bytes') return answer;
  const { stream: source, range: servedPart, ...contentFields } = answer.value;
  // All of the file, whatever was asked for.
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

/** An end or an error of one is one of the other. */
function piped(source: Readable, transform: Transform): Readable {
  // The reader of `transform` gets the error.
  pipeline(source, transform, () => {});
  return transform;
}

/** Holds back no more than the first bytes, until the prompt is there or it is certain that there is none. */
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

/** By the prompt its job is of; one that history has dropped names nothing. */
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
