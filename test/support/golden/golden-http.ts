import { type Called, call } from '../clients/raw-call.ts';
import type { GoldenExchange } from './golden-scenario.ts';
import { type Exchange, recordedFile } from './recordings.ts';

/** The answer of our server to a recorded request. */
export type Answer = Called;

type Big = { readonly body_bytes?: number; readonly data_file?: string; readonly bytes?: number };

const BOUNDARY = 'golden-boundary';

/** Sends a recorded request as it was sent then; `translate` puts our ids and our port into its text. */
export async function resend(
  port: number,
  exchange: GoldenExchange,
  translate: (text: string) => string,
): Promise<Answer> {
  const recorded = exchange.request;
  const body = bodyOf(exchange, translate);
  const headers = Object.entries(recorded.headers).map(([name, value]) => {
    const text = value.replace('<boundary>', BOUNDARY);
    return [name, translate(text)] as const;
  });
  return call(`http://127.0.0.1:${port}`, translate(recorded.path), {
    method: recorded.method,
    headers: Object.fromEntries(headers),
    ...(body !== undefined && { body }),
  });
}

function bodyOf(
  { request: recorded, bodyText }: GoldenExchange,
  translate: (text: string) => string,
): Buffer | undefined {
  const { body_text: text, multipart } = recorded;
  const { body_bytes: size } = recorded as Big;
  if (bodyText !== undefined) return Buffer.from(translate(bodyText));
  if (text !== undefined) return Buffer.from(translate(text));
  if (multipart !== undefined) return multipartBody(multipart);
  return size === undefined ? undefined : Buffer.alloc(size, 'x');
}

function multipartBody(parts: NonNullable<Exchange['request']['multipart']>): Buffer {
  const sections = parts.flatMap((part) => {
    const file = part.filename === undefined ? '' : `; filename="${part.filename}"`;
    const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${part.name}"${file}\r\n\r\n`;
    return [Buffer.from(head), partBytes(part), Buffer.from('\r\n')];
  });
  return Buffer.concat([...sections, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

/** Only their size matters of the large ones, so they are not among the fixtures. */
function partBytes(part: { readonly value?: string } & Big): Buffer {
  if (part.value !== undefined) return Buffer.from(part.value);
  if ((part.bytes ?? 0) > 100_000) return Buffer.alloc(part.bytes ?? 0, 'x');
  return recordedFile(part.data_file ?? '');
}
