import type { IncomingMessage } from 'node:http';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { type SpoolRefusal, type Spooled, spoolStream, tooLargeText } from './spool.ts';
import type { SpooledFile } from './wire/jobs.ts';

export type FormFile = {
  readonly field: string;
  readonly filename: string;
  readonly contentType: string;
  readonly file: SpooledFile;
};

export type Form = {
  readonly fields: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly FormFile[];
};

export type MultipartOptions = {
  readonly dir: string;
  /** Of the whole body, as v1 counts. */
  readonly maxFileBytes: number;
  readonly maxFields?: number;
  readonly maxFieldBytes?: number;
  readonly maxFiles?: number;
};

export type Received = { readonly ok: true; readonly value: Form } | SpoolRefusal;

/**
 * Reads a multipart body, files spooled to disk and hashed on the way. On a refusal nothing is left
 * on disk; the rest of the body is not read, so answer with `Connection: close`.
 */
export async function receiveMultipart(
  request: IncomingMessage,
  options: MultipartOptions,
): Promise<Received> {
  const early = refusedByHeaders(request, options.maxFileBytes);
  if (early) return early;
  const form = createForm(options);
  let parser: busboy.Busboy;
  try {
    parser = busboy(parserConfig(request, options));
  } catch {
    return malformed('The body is not multipart/form-data.');
  }
  form.listen(parser);
  let refusal: SpoolRefusal | undefined;
  try {
    await pipeline(request, limited(options.maxFileBytes), parser, { end: true });
  } catch (error) {
    refusal =
      error instanceof OverLimit
        ? tooLarge(options)
        : malformed('The multipart body is malformed.');
  }
  return form.finish(refusal, options);
}

class OverLimit extends Error {}

function parserConfig(request: IncomingMessage, options: MultipartOptions): busboy.BusboyConfig {
  return {
    headers: request.headers,
    // JavaScript parsers read names as latin1 unless told; v1 clients send UTF-8.
    defParamCharset: 'utf8',
    // Folders in a file name are v1's business: it keeps some and refuses others.
    preservePath: true,
    limits: {
      fieldSize: options.maxFieldBytes ?? 64 * 1024,
      fields: options.maxFields ?? 20,
      files: options.maxFiles ?? 5,
      fileSize: options.maxFileBytes,
      parts: (options.maxFields ?? 20) + (options.maxFiles ?? 5),
    },
  };
}

/** Counts the whole body: many small parts are as large as one big one. */
function limited(maxBytes: number): (source: AsyncIterable<Buffer>) => AsyncIterable<Buffer> {
  return async function* count(source) {
    let size = 0;
    for await (const chunk of source) {
      size += chunk.length;
      if (size > maxBytes) throw new OverLimit();
      yield chunk;
    }
  };
}

function createForm(options: MultipartOptions) {
  const fields = new Map<string, string[]>();
  const files: Promise<Spooled & { part: Omit<FormFile, 'file'> }>[] = [];
  let overLimit = false;
  const limit = (): void => void (overLimit = true);

  async function spoolPart(stream: Readable, part: Omit<FormFile, 'file'>) {
    // The parser fails a cut-off part before anybody reads it.
    stream.on('error', () => {});
    stream.once('limit', limit);
    const spooled = await spoolStream(stream, { dir: options.dir, maxBytes: options.maxFileBytes });
    if (!spooled.ok) stream.resume();
    return { ...spooled, part };
  }

  return {
    listen(parser: busboy.Busboy): void {
      parser.on('file', (field, stream, info) => {
        const { filename, mimeType: contentType } = info;
        files.push(spoolPart(stream, { field, filename: filename ?? '', contentType }));
      });
      parser.on('field', (name, value, info) => {
        if (info.valueTruncated || info.nameTruncated) limit();
        if (name !== undefined) fields.set(name, [...(fields.get(name) ?? []), value]);
      });
      for (const event of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const)
        parser.on(event, limit);
    },
    async finish(refusal: SpoolRefusal | undefined, limits: MultipartOptions): Promise<Received> {
      const settled = await Promise.all(files);
      const failed = settled.find((file) => !file.ok);
      const cause =
        refusal ??
        (overLimit ? tooLarge(limits) : undefined) ??
        (failed?.ok === false ? failed : undefined);
      const spooled = settled.flatMap((file) =>
        file.ok ? [{ ...file.part, file: file.value }] : [],
      );
      if (cause === undefined) return { ok: true, value: { fields, files: spooled } };
      await Promise.all(spooled.map(({ file }) => rm(file.path, { force: true })));
      return { ok: false, status: cause.status, message: cause.message };
    },
  };
}

function refusedByHeaders(
  { headers }: IncomingMessage,
  maxBytes: number,
): SpoolRefusal | undefined {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    return { ok: false, status: 415, message: `Content-Encoding ${encoding} is not taken.` };
  }
  if (Number(headers['content-length']) > maxBytes) {
    return { ok: false, status: 413, message: tooLargeText(maxBytes) };
  }
  return undefined;
}

function tooLarge(options: MultipartOptions): SpoolRefusal {
  return { ok: false, status: 413, message: tooLargeText(options.maxFileBytes) };
}

function malformed(message: string): SpoolRefusal {
  return { ok: false, status: 400, message };
}
