import { TextDecoder } from 'node:util';

/** Writes chunks of text in another charset as UTF-8. */
export type Transcode = (chunk: Buffer) => Buffer;

/** In these labels JSON is UTF-8 as it is. */
const UTF8 = /^(utf-?8|(us-)?ascii)$/i;

/**
 * For the charset that a content type names; `undefined`: the body is read as UTF-8. v1 reads bodies
 * by it, and some libraries (Apache HttpClient, Spring) write ISO-8859-1 where nothing else is asked for.
 */
export function transcoderFor(contentType: string | undefined): Transcode | undefined {
  const label = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? '')?.[1];
  if (label === undefined || UTF8.test(label)) return undefined;
  const decoder = decoderFor(label);
  return decoder && ((chunk) => Buffer.from(decoder.decode(chunk, { stream: true })));
}

function decoderFor(label: string): TextDecoder | undefined {
  try {
    return new TextDecoder(label);
  } catch {
    return undefined;
  }
}
