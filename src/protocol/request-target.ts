/** Path and query of a request, byte for byte: `query` with its question mark, or empty. */
export type RequestTarget = { readonly path: string; readonly query: string };

/** Splits a request target, which may be a whole address, without decoding anything. */
export function readTarget(url: string): RequestTarget {
  const target = url.replace(/^https?:\/\/[^/?#]*/i, '');
  const at = target.indexOf('?');
  return at < 0
    ? { path: target, query: '' }
    : { path: target.slice(0, at), query: target.slice(at) };
}

/** A part of an address without its escapes; `undefined` where they are none. */
export function decodedPart(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
