import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type Readable, Transform } from 'node:stream';
import busboy from 'busboy';
import { type SpoolResult, pipeInto, spoolStream, tooLargeText } from '../lib/spool.ts';
import type { FileDurability } from '../lib/durability.ts';
import { decodeField, decodeFile } from './transfer-encoding.ts';
import {
  type BodyRefusal,
  refusedBody,
  refusedByHeaders,
  stopUnpacking,
  unpackedBody,
} from './unpacked-body.ts';
import type { GrowingFile, SpooledFile } from '../protocol/job-api.ts';

/** The header of a part that is a file. */
export type FilePart = {
  readonly field: string;
  readonly filename: string;
  readonly contentType: string;
};

type FormFile = FilePart & { readonly file: SpooledFile };

export type Form = {
  readonly fields: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly FormFile[];
};

export type MultipartOptions = {
  readonly dir: string;
  readonly durability?: FileDurability | undefined;
  /** The limit for the whole body, which is what v1 counts. */
  readonly maxFileBytes: number;
  readonly maxFields?: number | undefined;
  readonly maxFiles?: number;
  /** Called for a larger file while it arrives. */
  readonly follow?: ((part: FilePart, file: GrowingFile) => void) | undefined;
};

export type ReceivedForm = { readonly ok: true; readonly value: Form } | BodyRefusal;

/**
 * Reads a multipart body. Its files are spooled to disk and hashed meanwhile. Reading stops at the
 * first fault. After a refusal no file is left on disk and the rest of the body is not read: answer
 * with `Connection: close`.
 */
export async function receiveMultipart(
  request: IncomingMessage,
  options: MultipartOptions,
): Promise<ReceivedForm> {
  const refusedEarly = refusedByHeaders(request, options.maxFileBytes);
  if (refusedEarly) return refusedEarly;
  const boundary = boundaryOf(request.headers['content-type'] ?? '') ?? '';
  if (boundary.length > MAX_BOUNDARY_CHARS) return refusedBody(400, NO_FORM);
  let parser: busboy.Busboy;
  try {
    parser = busboy(parserConfig(request, options));
  } catch {
    return refusedBody(400, NO_FORM);
  }
  const filter = createBodyFilter(options.maxFileBytes, new HeaderRepair(boundary));
  const stopped = new AbortController();
  // The parser must not be destroyed inside its own events.
  const form = new ArrivingForm(options, (cause) => queueMicrotask(() => stopped.abort(cause)));
  form.attach(parser);
  const body = unpackedBody(request);
  let failure: unknown;
  try {
    // The filter may have ended while the parser waits for a file that cannot be stored.
    const parsed = pipeline(filter, parser, { signal: stopped.signal });
    await Promise.all([pipeInto(body, filter), parsed]);
  } catch (error) {
    failure = stopped.signal.aborted ? stopped.signal.reason : error;
    stopUnpacking(body, request);
  }
  return form.finish(failure);
}

/** By RFC 2046, as in v1's form reader. The time that a search for a boundary takes may grow with its length. */
const MAX_BOUNDARY_CHARS = 70;
const NO_FORM = 'The body is not multipart/form-data.';

/** Thrown at a limit. Its message is sent to the client. */
class LimitExceeded extends Error {}

/** Thrown when a file could not be stored. The refusal of the file says why. */
class NotStored extends Error {}

function parserConfig(request: IncomingMessage, options: MultipartOptions): busboy.BusboyConfig {
  return {
    headers: { 'content-type': readableType(request.headers['content-type'] ?? '') },
    // JavaScript parsers read names as latin1 by default; v1 clients send UTF-8.
    defParamCharset: 'utf8',
    // v1 accepts some folders in a file name and refuses others.
    preservePath: true,
    limits: limitsOf(options),
  };
}

function limitsOf({ maxFields: fields = 20, maxFiles: files = 5, maxFileBytes }: MultipartOptions) {
  const parts = fields + files;
  return { fieldSize: 64 * 1024, fields, files, fileSize: maxFileBytes, parts };
}

/**
 * Returns the content type with its boundary quoted. v1 accepts an unquoted one with `=`, `/` or
 * `:` in it, blanks around the `=`, and a semicolon at the end.
 */
function readableType(type: string): string {
  const [form = '', ...parameters] = type.split(';').map((text) => text.trim());
  const boundary = boundaryOf(type);
  if (form.toLowerCase() !== 'multipart/form-data' || boundary === undefined) return type;
  const others = parameters.filter((text) => text !== '' && !/^boundary\s*=/i.test(text));
  return [form, ...others, `boundary="${boundary}"`].join('; ');
}

function boundaryOf(type: string): string | undefined {
  const [, quoted, bare] = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^;]*))/i.exec(type) ?? [];
  return quoted ?? bare?.trim();
}

/** Counts the bytes of the whole body, since many small parts need as much as one large part. */
function createBodyFilter(maxBytes: number, headers: HeaderRepair): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size > maxBytes) return done(new LimitExceeded(tooLargeText(maxBytes)));
      for (const bytes of headers.write(chunk)) this.push(bytes);
      done();
    },
    flush: (done) => done(null, headers.rest()),
  });
}

/** Longer headers are left to the parser, which refuses them. */
const MAX_HEADER_BYTES = 16 * 1024;
const END_OF_HEADERS = '\r\n\r\n';
const CARRIAGE_RETURN = 0x0d;

/**
 * Removes semicolons at the end of a part's `Content-Disposition`, as v1 does, and reads other
 * types of it (`attachment`) as `form-data`: the parser skips such parts. A form writer for C# that
 * many programs have copied sends the semicolon.
 */
class HeaderRepair {
  readonly #delimiter: Buffer;
  /** The parser skips the line end before the first boundary, like everything before a part. */
  #pending: Buffer = Buffer.from('\r\n');
  #isInHeaders = false;

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  }

  /** The bytes so far, but for those that have to wait for the next ones. */
  *write(chunk: Buffer): Generator<Buffer> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const end = this.#isInHeaders ? this.#endOfHeaders() : this.#endOfDelimiter();
      if (end === undefined) break;
      const bytes = this.#take(end);
      const isRepaired = this.#isInHeaders && bytes.length <= MAX_HEADER_BYTES;
      yield isRepaired ? withReadableDisposition(inUtf8(bytes)) : bytes;
      this.#isInHeaders = !this.#isInHeaders;
    }
    if (!this.#isInHeaders) yield this.#take(this.#startOfTail());
  }

  rest(): Buffer {
    return this.#pending;
  }

  #take(end: number): Buffer {
    const bytes = this.#pending.subarray(0, end);
    this.#pending = this.#pending.subarray(end);
    return bytes;
  }

  #endOfHeaders(): number | undefined {
    const start = this.#pending.indexOf(END_OF_HEADERS);
    if (start >= 0) return start + END_OF_HEADERS.length;
    return this.#pending.length > MAX_HEADER_BYTES ? this.#pending.length : undefined;
  }

  #endOfDelimiter(): number | undefined {
    const start = this.#pending.indexOf(this.#delimiter);
    return start < 0 ? undefined : start + this.#delimiter.length;
  }

  /** Returns where a delimiter may begin that continues in the next chunk. */
  #startOfTail(): number {
    const from = Math.max(0, this.#pending.length - this.#delimiter.length + 1);
    const start = this.#pending.indexOf(CARRIAGE_RETURN, from);
    return start < 0 ? this.#pending.length : start;
  }
}

function withReadableDisposition(headers: Buffer): Buffer {
  const text = headers.toString('latin1');
  const asFormData = text.replaceAll(/^(content-disposition:[ \t]*)[^;\s]+/gim, '$1form-data');
  const repaired = asFormData.replaceAll(/^content-disposition:.*/gim, (line) =>
    line.replace(/([^; \t])[; \t]+$/, '$1'),
  );
  return repaired === text ? headers : Buffer.from(repaired, 'latin1');
}

/**
 * Converts headers that are not UTF-8. Windows programs write file names in the code page of their
 * machine. Read as Latin-1, such a name is usable, and the answer tells it. Bytes that are no
 * letter in Latin-1 become `_`.
 */
function inUtf8(headers: Buffer): Buffer {
  if (isUtf8(headers)) return headers;
  return Buffer.from(headers.toString('latin1').replaceAll(/[\u0080-\u009f]/g, '_'));
}

/** The parts of a form as they arrive. */
class ArrivingForm {
  readonly #options: MultipartOptions;
  readonly #stop: (cause: Error) => void;
  readonly #fields = new Map<string, string[]>();
  readonly #files: Promise<SpoolResult & { part: FilePart }>[] = [];

  constructor(options: MultipartOptions, stop: (cause: Error) => void) {
    this.#options = options;
    this.#stop = stop;
  }

  attach(parser: busboy.Busboy): void {
    const limits = limitsOf(this.#options);
    const limit = (message: string) => (): void => this.#stop(new LimitExceeded(message));
    const limitField = limit(`Maximum size of a form field ${limits.fieldSize} exceeded.`);
    parser.on('file', (field, stream, info) => {
      const { filename, mimeType: contentType, encoding } = info;
      stream.once('limit', limit(tooLargeText(limits.fileSize)));
      // A part without a field name has no file name here, whatever its type.
      const part = { field: field ?? '', filename: filename ?? '', contentType };
      this.#files.push(this.#spoolPart(stream, part, encoding));
    });
    parser.on('field', (name, value, info) => {
      if (info.valueTruncated || info.nameTruncated) limitField();
      if (name === undefined) return;
      const earlier = this.#fields.get(name) ?? [];
      this.#fields.set(name, [...earlier, decodeField(value, info.encoding)]);
    });
    parser.on('fieldsLimit', limit(`Maximum number of form fields ${limits.fields} exceeded.`));
    parser.on('filesLimit', limit(`Maximum number of files ${limits.files} exceeded.`));
    parser.on('partsLimit', limit(`Maximum number of form parts ${limits.parts} exceeded.`));
  }

  async finish(failure: unknown): Promise<ReceivedForm> {
    const settled = await Promise.all(this.#files);
    const files = settled.flatMap((file) => (file.ok ? [{ ...file.part, file: file.value }] : []));
    const failed = settled.find((file) => !file.ok && file.status === 507);
    const refusal = failed?.ok === false ? failed : refusalOf(failure);
    if (refusal === undefined) return { ok: true, value: { fields: this.#fields, files } };
    await Promise.all(files.map(({ file }) => rm(file.path, { force: true })));
    return refusedBody(refusal.status, refusal.message);
  }

  async #spoolPart(stream: Readable, part: FilePart, encoding: string) {
    // The parser reports an error for a cut-off part before the part is read.
    stream.on('error', () => {});
    const { dir, durability, maxFileBytes: maxBytes } = this.#options;
    const follow = (file: GrowingFile): void => this.#options.follow?.(part, file);
    const content = decodeFile(stream, encoding);
    const spooled = await spoolStream(content, { dir, maxBytes, durability, follow });
    if (!spooled.ok) this.#stop(new NotStored());
    return { ...spooled, part };
  }
}

function refusalOf(failure: unknown): BodyRefusal | undefined {
  if (failure === undefined) return undefined;
  if (failure instanceof LimitExceeded) return refusedBody(413, failure.message);
  return refusedBody(400, 'The multipart body is malformed.');
}
