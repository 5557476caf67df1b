import { TextDecoder } from 'node:util';

/**
 * Returns a decoder for the charset that a content type names. A body without a known charset is
 * UTF-8. v1 obeys the charset, and some libraries (Apache HttpClient, Spring) write ISO-8859-1 by
 * default. The decoder throws a TypeError for bytes that are no text.
 */
export function decoderFor(contentType: string | undefined): TextDecoder {
  const label = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? '')?.[1];
  // Under this label too, JSON is UTF-8.
  if (label === undefined || /^(us-)?ascii$/i.test(label)) return utf8Decoder();
  try {
    return new TextDecoder(label, { fatal: true });
  } catch {
    return utf8Decoder();
  }
}

function utf8Decoder(): TextDecoder {
  return new TextDecoder('utf-8', { fatal: true });
}
