import { TextDecoder } from 'node:util';

/** Writes chunks of text in another charset as UTF-8. */
export type Transcode = (chunk: Buffer) => Buffer;

/** The labels under which JSON is UTF-8. */
const UTF8 = /^(utf-?8|(us-)?ascii)$/i;

/**
 * Returns the transcoder for the charset that a content type names. `undefined`: the body is read
 * as UTF-8. v1 obeys the charset, and some libraries (Apache HttpClient, Spring) write ISO-8859-1
 * by default.
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
