/** Path and query of a request, byte for byte. `query` includes its question mark, or is empty. */
export type RequestTarget = { readonly path: string; readonly query: string };

/** Splits a request target, which may be a whole address, without decoding anything. */
export function readTarget(url: string): RequestTarget {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '');
  const at = target.indexOf('?');
  return at < 0
    ? { path: target, query: '' }
    : { path: target.slice(0, at), query: target.slice(at) };
}

/** Returns a part of an address without its escapes; `undefined` when an escape is malformed. */
export function decodedPart(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
